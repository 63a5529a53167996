//! The Aldermark Encyclopedia: long articles about an invented country with links, info boxes, tables, categories and
//! a search. All articles are rendered from one set of facts.

pub(crate) mod article;
pub(crate) mod articles;
mod pages;
pub(crate) mod search;
pub(crate) mod world;

use axum::{Router, routing::get};

use crate::shutdown::Shutdown;

pub(crate) fn routes() -> Router<Shutdown> {
    Router::new()
        .route("/wiki/", get(pages::front))
        .route("/wiki/all", get(pages::all))
        .route("/wiki/search", get(pages::results))
        .route("/wiki/a/{name}", get(pages::article))
        .route("/wiki/category/{name}", get(pages::category))
}
