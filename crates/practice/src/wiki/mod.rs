//! The Aldermark Encyclopedia: long articles on an invented country, linked with each other, with boxes of facts,
//! tables, categories and a search. Everything in it is made from one set of facts.

pub(crate) mod article;
pub(crate) mod articles;
mod pages;
pub(crate) mod search;
pub(crate) mod world;

use axum::{Router, routing::get};

use crate::stop::Stop;

pub(crate) fn routes() -> Router<Stop> {
    Router::new()
        .route("/wiki/", get(pages::front))
        .route("/wiki/all", get(pages::all))
        .route("/wiki/search", get(pages::results))
        .route("/wiki/a/{name}", get(pages::article))
        .route("/wiki/category/{name}", get(pages::category))
}
