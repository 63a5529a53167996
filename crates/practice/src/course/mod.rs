//! The obstacle course: every awkward thing a page can do to an automated browser, each at a stable address
//! with stable element ids, saying visibly in `#log` or `#result` what happened to it.
//! One table drives the routes, the index page and the tests.

mod controls;
mod failures;
mod fixtures;
mod layout;
mod oddities;
mod settle;
mod windows;

use axum::{
    Router,
    response::{Html, Response},
    routing::get,
};
use maud::{DOCTYPE, PreEscaped, html};

use crate::{html, stop::Stop};

/// What a plain GET of an obstacle gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 200 and a page, perhaps after a while.
    Page,
    /// A page with another status.
    Status(u16),
    /// A redirect (302) onwards.
    Redirects,
    /// Headers at most; the rest comes never (until the server stops).
    Never,
    /// The connection is closed or reset without an answer.
    HangsUp,
}

/// One thing to get past.
#[derive(Clone, Copy, Debug)]
pub struct Obstacle {
    /// Path, and query where it needs one.
    pub path: &'static str,
    pub title: &'static str,
    /// What a browser that gets past it has shown.
    pub proves: &'static str,
    pub answer: Answer,
    fragment: Option<&'static str>,
}

impl Obstacle {
    /// The page between heading and end, where it is a fixed one.
    pub(crate) const fn fragment(&self) -> Option<&'static str> {
        self.fragment
    }

    /// An obstacle that its theme serves by itself.
    const fn special(path: &'static str, title: &'static str, proves: &'static str, answer: Answer) -> Self {
        Self { path, title, proves, answer, fragment: None }
    }
}

/// An obstacle that is a file under `assets/course`; the name is both its path and its file.
macro_rules! page {
    ($name:literal, $title:literal, $proves:literal) => {
        $crate::course::Obstacle {
            path: concat!("/course/", $name),
            title: $title,
            proves: $proves,
            answer: $crate::course::Answer::Page,
            fragment: Some(include_str!(concat!("../../assets/course/", $name, ".html"))),
        }
    };
}
use page;

/// Obstacles of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    pub name: &'static str,
    pub obstacles: &'static [Obstacle],
}

pub const THEMES: &[Theme] = &[
    Theme { name: "Controls and typing", obstacles: controls::OBSTACLES },
    Theme { name: "Layout, scrolling and visibility", obstacles: layout::OBSTACLES },
    Theme { name: "Windows and dialogs", obstacles: windows::OBSTACLES },
    Theme { name: "Failures and detours", obstacles: failures::OBSTACLES },
    Theme { name: "Settling", obstacles: settle::OBSTACLES },
    Theme { name: "Oddities", obstacles: oddities::OBSTACLES },
];

/// Every obstacle, in the order of the index page.
pub fn obstacles() -> impl Iterator<Item = &'static Obstacle> {
    THEMES.iter().flat_map(|theme| theme.obstacles)
}

pub(crate) fn routes() -> Router<Stop> {
    let mut routes = Router::new().route("/course/", get(index));
    for obstacle in obstacles() {
        if let Some(fragment) = obstacle.fragment {
            routes = routes.route(obstacle.path, get(async move || Html(shell(obstacle, fragment))));
        }
    }
    routes
        .merge(fixtures::routes())
        .merge(failures::routes())
        .merge(oddities::routes())
        .merge(settle::routes())
        .merge(windows::routes())
}

/// The frame around an obstacle: where one is, what it is about, then the obstacle itself.
fn shell(obstacle: &Obstacle, fragment: &str) -> String {
    framed(obstacle.title, obstacle.proves, fragment)
}

fn framed(title: &str, lead: &str, fragment: &str) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Obstacle course" }
                link rel="icon" href="/favicon.svg";
                link rel="stylesheet" href="/static/base.css";
                link rel="stylesheet" href="/static/course.css";
                script src="/static/course.js" {}
            }
            body class="course" {
                header.bar { a href="/course/" id="home" { "Obstacle course" } }
                main {
                    h1 { (title) }
                    p.lead { (lead) }
                    (PreEscaped(fragment))
                }
            }
        }
    }
    .into_string()
}

async fn index() -> Response {
    let body = html! {
        header.bar { a href="/course/" id="home" { "Obstacle course" } }
        main {
            h1 { "Obstacle course" }
            p.lead {
                (obstacles().count()) " awkward pages, each at a stable address, each saying what happened to it."
            }
            @for theme in THEMES {
                section {
                    h2 { (theme.name) }
                    ul.obstacles {
                        @for obstacle in theme.obstacles {
                            li { a href=(obstacle.path) { (obstacle.title) } p { (obstacle.proves) } }
                        }
                    }
                }
            }
        }
    };
    html::page("Obstacle course", "course", &body)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_holds_every_theme_once() {
        let listed: Vec<_> = THEMES.iter().flat_map(|theme| theme.obstacles).map(|o| o.path).collect();
        assert_eq!(listed, obstacles().map(|o| o.path).collect::<Vec<_>>());
        assert_eq!(
            listed.iter().collect::<HashSet<_>>().len(),
            obstacles().count(),
            "a path is listed twice"
        );
    }

    #[test]
    fn what_happens_is_told_where_the_script_looks_for_it() {
        for obstacle in obstacles() {
            let Some(fragment) = obstacle.fragment else { continue };
            if fragment.contains("log(") {
                assert!(fragment.contains("id=\"log\""), "{} logs into nothing", obstacle.path);
            }
        }
    }
}
