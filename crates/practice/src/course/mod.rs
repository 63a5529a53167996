//! The obstacle course: pages that are difficult for an automated browser. Each has a stable URL and stable element
//! ids, and shows in `#log` or `#result` what happened to it.
//! The tables of obstacles drive the routes, the index page and the tests.

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

use crate::{html, shutdown::Shutdown};

/// How the server responds to a GET request for an obstacle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObstacleResponse {
    /// Status 200 and a page, possibly after a delay.
    Page,
    /// A page with the given status.
    Status(u16),
    /// A redirect with status 302.
    Redirect,
    /// Nothing, or only the headers and a part of the body, until the server stops.
    Never,
    /// The connection is closed or reset without a response.
    Abort,
}

/// One page of the obstacle course.
#[derive(Clone, Copy, Debug)]
pub struct Obstacle {
    /// The path, with a query string if one is needed.
    pub path: &'static str,
    pub title: &'static str,
    /// What a browser must do right on this page.
    pub requirement: &'static str,
    pub response: ObstacleResponse,
    fragment: Option<&'static str>,
}

impl Obstacle {
    /// The HTML below the heading, if the page is a file.
    pub(crate) const fn fragment(&self) -> Option<&'static str> {
        self.fragment
    }

    /// An obstacle that is served by a handler of its theme.
    const fn special(
        path: &'static str,
        title: &'static str,
        requirement: &'static str,
        response: ObstacleResponse,
    ) -> Self {
        Self { path, title, requirement, response, fragment: None }
    }
}

/// An obstacle that is a file under `assets/course`; its path has the same name.
macro_rules! page {
    ($name:literal, $title:literal, $requirement:literal) => {
        $crate::course::Obstacle {
            path: concat!("/course/", $name),
            title: $title,
            requirement: $requirement,
            response: $crate::course::ObstacleResponse::Page,
            fragment: Some(include_str!(concat!("../../assets/course/", $name, ".html"))),
        }
    };
}
use page;

/// A group of related obstacles.
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

/// Returns all obstacles, in the order of the index page.
pub fn obstacles() -> impl Iterator<Item = &'static Obstacle> {
    THEMES.iter().flat_map(|theme| theme.obstacles)
}

pub(crate) fn routes() -> Router<Shutdown> {
    let mut routes = Router::new().route("/course/", get(index));
    for obstacle in obstacles() {
        if let Some(fragment) = obstacle.fragment {
            routes = routes.route(
                obstacle.path,
                get(async move || Html(course_page(obstacle.title, obstacle.requirement, fragment))),
            );
        }
    }
    routes
        .merge(fixtures::routes())
        .merge(failures::routes())
        .merge(oddities::routes())
        .merge(settle::routes())
        .merge(windows::routes())
}

/// Renders a page of the course: title, introduction and content.
fn course_page(title: &str, lead: &str, fragment: &str) -> String {
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
                            li { a href=(obstacle.path) { (obstacle.title) } p { (obstacle.requirement) } }
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
    fn every_path_is_listed_once() {
        let listed: Vec<_> = THEMES.iter().flat_map(|theme| theme.obstacles).map(|o| o.path).collect();
        assert_eq!(listed, obstacles().map(|o| o.path).collect::<Vec<_>>());
        assert_eq!(
            listed.iter().collect::<HashSet<_>>().len(),
            obstacles().count(),
            "a path is listed twice"
        );
    }

    #[test]
    fn pages_that_log_have_a_log_element() {
        for obstacle in obstacles() {
            let Some(fragment) = obstacle.fragment else { continue };
            if fragment.contains("log(") {
                assert!(fragment.contains("id=\"log\""), "{} has no log element", obstacle.path);
            }
        }
    }
}
