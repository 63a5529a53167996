//! Aldermark Works, a job board: search with selects and dates, job pages, companies and an application form.
//! The server stores nothing: an application is validated, confirmed and discarded.

pub(crate) mod apply;
mod description;
mod pages;
pub(crate) mod postings;
pub(crate) mod search;

use axum::{Router, routing::get};

use crate::shutdown::Shutdown;

pub(crate) fn routes() -> Router<Shutdown> {
    Router::new()
        .route("/jobs/", get(pages::front))
        .route("/jobs/search", get(pages::results))
        .route("/jobs/companies", get(pages::all_companies))
        .route("/jobs/company/{slug}", get(pages::company))
        .route("/jobs/{number}", get(pages::job))
        .route("/jobs/{number}/apply", get(apply::form).post(apply::submit))
}
