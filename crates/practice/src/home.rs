//! The front door: the page that lists the sites, and the table of everything served.

use axum::{
    Router,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
    routing::get,
};
use maud::html;

use crate::{assets, course, echo, hosts, html::document, jobs, shop, stop::Stop, vault, wiki};

pub(crate) fn routes(stop: Stop) -> Router {
    let mut routes = Router::new()
        .route("/", get(home))
        .merge(assets::routes())
        .merge(course::routes())
        .merge(echo::routes())
        .merge(jobs::routes())
        .merge(shop::routes())
        .merge(vault::routes())
        .merge(wiki::routes());
    for site in hosts::SITES {
        let inside = format!("/{site}/");
        routes = routes.route(&format!("/{site}"), get(async move || Redirect::temporary(&inside)));
    }
    routes.fallback(nothing_here).with_state(stop)
}

const ABOUT: &[(&str, &str, &str)] = &[
    ("shop", "Tidewater Goods", "A shop with shelves, search, filters, a cart and a checkout."),
    (
        "wiki",
        "Aldermark Encyclopedia",
        "Long articles on an invented country, with tables, links and a search.",
    ),
    ("jobs", "Aldermark Works", "A job board with forms, selects and dates, and applications to fill in."),
    ("course", "Obstacle course", "Every awkward thing a page can do to a browser, one at a time."),
];

async fn home() -> Html<String> {
    let body = html! {
        header.bar { strong { "Practice sites" } }
        main {
            h1 { "Practice sites" }
            p.lead { "Small websites to practise on. They are the same on every run and need no network." }
            ul.obstacles {
                @for (site, name, about) in ABOUT {
                    li { a href={ "/" (site) "/" } { (name) } p { (about) } }
                }
            }
        }
    };
    Html(document("Practice sites", "course", &body))
}

async fn nothing_here() -> Response {
    let body = html! {
        main {
            h1 { "Nothing here" }
            p.lead { "This address leads nowhere. " a href="/" { "The sites are over there." } }
        }
    };
    (StatusCode::NOT_FOUND, Html(document("Not found", "course", &body))).into_response()
}
