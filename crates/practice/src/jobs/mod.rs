//! Aldermark Works, a job board: search with selects and dates, job pages, companies and an application form.
//! Nothing is kept: an application is checked, confirmed and forgotten.

pub(crate) mod apply;
pub(crate) mod board;
mod pages;
pub(crate) mod search;
mod wording;

use axum::{Router, routing::get};

use crate::stop::Stop;

pub(crate) fn routes() -> Router<Stop> {
    Router::new()
        .route("/jobs/", get(pages::front))
        .route("/jobs/search", get(pages::results))
        .route("/jobs/companies", get(pages::all_companies))
        .route("/jobs/company/{slug}", get(pages::company))
        .route("/jobs/{number}", get(pages::job))
        .route("/jobs/{number}/apply", get(apply::form).post(apply::send))
}
