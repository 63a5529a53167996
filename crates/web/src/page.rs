//! The pages embedded in the binary, the security headers of every response, and the headers of event streams. Knows nothing about the data that the pages
//! show.

use axum::{
    Router,
    body::Body,
    extract::Path,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use rust_embed::RustEmbed;

/// The output of `make web`; empty if it never ran.
#[derive(RustEmbed)]
#[folder = "ui/dist"]
struct BuiltPages;

/// A page of the user interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Monitor,
    /// The page of a training loop.
    Loop,
    Viewer,
}

impl Page {
    const fn file(self) -> &'static str {
        match self {
            Self::Monitor => "monitor.html",
            Self::Loop => "loop.html",
            Self::Viewer => "viewer.html",
        }
    }
}

/// Allows nothing from other origins and nothing inline, so that even text interpreted as markup could not run scripts.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
     font-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>webgym</title><h1>The pages are not built</h1>\
     <p>This webgym was built without its user interface. In the source tree, with Node 20 or newer, run</p>\
     <pre>make web\ncargo build --release</pre><p>and start webgym again. Everything else works without the user interface.</p></html>";

/// Returns the routes of a page at `/` and of its assets. URLs in the page are relative, so it works under any path prefix.
pub fn router(page: Page) -> Router {
    Router::new()
        .route("/", get(async move || document(page)))
        .route("/assets/{*path}", get(async |Path(path): Path<String>| asset(&path)))
}

/// Returns the page of a training loop beside that of a run, at `/loop`. Its URLs are relative to the same folder.
pub(crate) fn loop_page() -> Router {
    Router::new().route("/loop", get(async || document(Page::Loop)))
}

fn document(page: Page) -> Response {
    let html = match BuiltPages::get(page.file()) {
        Some(file) => Html(file.data.into_owned()).into_response(),
        None => Html(NOT_BUILT).into_response(),
    };
    ([(header::CACHE_CONTROL, "no-cache")], html).into_response()
}

fn asset(path: &str) -> Response {
    let Some(file) = BuiltPages::get(&format!("assets/{path}")) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Vite puts a hash of the content into the name of every asset except this one.
    let cache = if path == "theme.js" { "no-cache" } else { "public, max-age=31536000, immutable" };
    let headers = [(header::CONTENT_TYPE, content_type(path)), (header::CACHE_CONTROL, cache)];
    (headers, file.data.into_owned()).into_response()
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        _ => "application/octet-stream",
    }
}

/// Headers of every response, pages and data alike.
const SECURITY_HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub(crate) fn set_security_headers(response: &mut Response) {
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}

/// Returns the response of an event stream.
pub(crate) fn event_stream(messages: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Keeps nginx from buffering the stream, which would delay every message.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, messages).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn paths_outside_build_are_not_found() {
        for path in ["../Cargo.toml", "nothing.js", "", "../../src/lib.rs"] {
            assert_eq!(asset(path).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    /// The pages insert text only as text nodes.
    #[test]
    fn pages_never_insert_html() {
        fn check(folder: &std::path::Path) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    check(&path);
                } else if path.extension().is_some_and(|extension| extension == "ts" || extension == "tsx") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    for forbidden in [
                        "dangerouslySetInnerHTML",
                        "innerHTML",
                        "outerHTML",
                        "insertAdjacentHTML",
                        "document.write",
                        "eval(",
                    ] {
                        assert!(!text.contains(forbidden), "{} uses {forbidden}", path.display());
                    }
                }
            }
        }
        check(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/src"));
    }
}
