//! A site that blocks every visitor: each request gets a page that looks like a CAPTCHA, with status 403.

use axum::{
    Router,
    http::StatusCode,
    response::{Html, IntoResponse, Response},
    routing::any,
};
use maud::{Markup, html};

use crate::{html::document, shutdown::Shutdown};

/// Facts that the tasks ask for. No page shows them.
pub(crate) const READING_ROOM_OPENS: &str = "10:30";
pub(crate) const PAINTINGS: u32 = 214;

pub(crate) fn routes() -> Router<Shutdown> {
    Router::new().route("/vault/", any(blocked)).route("/vault/{*rest}", any(blocked))
}

async fn blocked() -> Response {
    (StatusCode::FORBIDDEN, Html(block_page("vault"))).into_response()
}

/// Renders the access-denied page (a fake captcha) that a site shows to a blocked client.
pub(crate) fn block_page(site: &str) -> String {
    let body = html! {
        main.gate {
            (shield())
            h1 { "Checking that you are human" }
            p { "Traffic from your network looks automated, so access to this site is blocked for now." }
            div.challenge {
                p { strong { "Verification required" } }
                p { "Select every picture that shows a bridge." }
                div.tiles {
                    @for tile in 0..9_u32 {
                        button.tile type="button" aria-label={ "Picture " (tile + 1) } { (tile_image(tile)) }
                    }
                }
                label.robot { input type="checkbox" id="not-a-robot"; " I am not a robot" }
                button.primary type="button" id="verify" disabled { "Verify" }
            }
            p.small { "Access denied. Incident 7F-2291-" (site) ". Automated access is not permitted." }
        }
    };
    document("Access denied: verification required", "vault", &body)
}

fn shield() -> Markup {
    html! {
        svg width="56" height="56" viewBox="0 0 56 56" aria-hidden="true" {
            path d="M28 4 L50 12 V28 C50 42 40 50 28 53 C16 50 6 42 6 28 V12 Z" fill="#e5484d" {}
            path d="M20 20 L36 36 M36 20 L20 36" stroke="#fff" stroke-width="5" stroke-linecap="round" {}
        }
    }
}

/// Draws hills and water; every third tile also has a bridge.
fn tile_image(tile: u32) -> Markup {
    let hue = (tile * 47 + 190) % 360;
    let height = 34 + tile * 13 % 20;
    html! {
        svg viewBox="0 0 96 72" aria-hidden="true" {
            rect width="96" height="72" fill={ "hsl(" (hue) " 45% 82%)" } {}
            path d={ "M0 " (height) " Q24 " (height - 18) " 48 " (height) " T96 " (height - 6) " V72 H0 Z" }
                fill={ "hsl(" ((hue + 90) % 360) " 30% 45%)" } {}
            rect y="56" width="96" height="16" fill={ "hsl(" ((hue + 20) % 360) " 50% 58%)" } {}
            @if tile % 3 == 1 {
                path d="M8 58 V40 H88 V58 M8 48 Q48 22 88 48" fill="none" stroke="#4a3b32" stroke-width="4" {}
            }
        }
    }
}
