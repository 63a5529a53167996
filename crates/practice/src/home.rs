//! The home page, which lists the sites, and the router of all sites.

use axum::{
    Router,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
    routing::get,
};
use maud::html;

use crate::{assets, course, echo, hosts, html::document, jobs, shop, shutdown::Shutdown, vault, wiki};

pub(crate) fn routes(shutdown: Shutdown) -> Router {
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
        let root = format!("/{site}/");
        routes = routes.route(&format!("/{site}"), get(async move || Redirect::temporary(&root)));
    }
    routes.fallback(not_found).with_state(shutdown)
}

/// Site, name and description.
const SITES: &[(&str, &str, &str)] = &[
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
                @for (site, name, about) in SITES {
                    li { a href={ "/" (site) "/" } { (name) } p { (about) } }
                }
            }
        }
    };
    Html(document("Practice sites", "course", &body))
}

async fn not_found() -> Response {
    let body = html! {
        main {
            h1 { "Nothing here" }
            p.lead { "This address leads nowhere. " a href="/" { "The sites are over there." } }
        }
    };
    (StatusCode::NOT_FOUND, Html(document("Not found", "course", &body))).into_response()
}
