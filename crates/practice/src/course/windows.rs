//! Obstacles: pages that open windows or dialogs.

use axum::{Form, Router, extract::Query, response::Html, routing::get};
use maud::html;

use super::{Obstacle, course_page, page};
use crate::shutdown::Shutdown;

pub(super) const OBSTACLES: &[Obstacle] = &[
    page!("popups", "Popups", "Whatever opens a new window ends up in the page the agent sees."),
    page!(
        "popup-timer",
        "Popup without a click",
        "A window opened by a timer, without a gesture, does no harm."
    ),
    page!("dialogs", "Dialogs", "alert, confirm, prompt and print never block."),
    page!("dialog-onload", "Dialog on load", "A page that opens with an alert still loads."),
    page!("dialog-loop", "Fifty dialogs", "A loop of fifty alerts ends by itself."),
    page!("beforeunload", "Leave page?", "A page that asks to stay can be left."),
];

pub(super) fn routes() -> Router<Shutdown> {
    Router::new().route("/course/opened", get(opened).post(posted))
}

type Pairs = Vec<(String, String)>;

async fn opened(Query(pairs): Query<Pairs>) -> Html<String> {
    request_page("GET", &pairs)
}

async fn posted(Query(mut pairs): Query<Pairs>, Form(fields): Form<Pairs>) -> Html<String> {
    pairs.extend(fields);
    request_page("POST", &pairs)
}

/// Shows the method and the fields of the request, so that a test can tell which window it sees.
fn request_page(method: &str, pairs: &[(String, String)]) -> Html<String> {
    let fragment = html! {
        p { "Reached by " strong id="method" { (method) } "." }
        dl id="fields" {
            @for (name, value) in pairs { dt { (name) } dd id={ "field-" (name) } { (value) } }
        }
        p { button id="here" onclick="this.textContent = 'Clicked'" { "A button here" } }
        p { a href="/course/popups" { "Back to the popups" } }
    };
    Html(course_page("Opened", "The page that popups and forms lead to.", &fragment.into_string()))
}
