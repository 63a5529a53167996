//! The pages that are built into this binary, who may see them, and how they are served. Owns the headers that keep
//! hostile text from becoming anything but text; knows nothing of what the pages show.

mod guard;
mod place;

use axum::{
    Router,
    extract::Path,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use rust_embed::RustEmbed;

pub use guard::Guard;
pub use place::{Place, serve};

/// What `make web` built; empty when it never ran.
#[derive(RustEmbed)]
#[folder = "ui/dist"]
struct Built;

/// A page of the user interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Monitor,
    Viewer,
}

impl Entry {
    const fn file(self) -> &'static str {
        match self {
            Self::Monitor => "monitor.html",
            Self::Viewer => "viewer.html",
        }
    }
}

/// Nothing from elsewhere, nothing inline: page text that got into the document as markup could still do nothing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
     font-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>webgym</title><h1>The pages are not built</h1>\
     <p>This webgym was built without its user interface. In the source tree, with Node 20 or newer, run</p>\
     <pre>make web\ncargo build --release</pre><p>and start it again. Everything else works as it is.</p></html>";

/// The page at `/` and what it loads. Addresses in it are relative, so it works under any path prefix.
pub fn router(entry: Entry) -> Router {
    Router::new()
        .route("/", get(async move || document(entry)))
        .route("/assets/{*path}", get(async |Path(path): Path<String>| asset(&path)))
}

fn document(entry: Entry) -> Response {
    let page = match Built::get(entry.file()) {
        Some(file) => Html(file.data.into_owned()).into_response(),
        None => Html(NOT_BUILT).into_response(),
    };
    ([(header::CACHE_CONTROL, "no-cache")], page).into_response()
}

fn asset(path: &str) -> Response {
    let Some(file) = Built::get(&format!("assets/{path}")) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Vite puts a digest of the content into every name but this one.
    let cache = if path == "theme.js" { "no-cache" } else { "public, max-age=31536000, immutable" };
    let headers = [(header::CONTENT_TYPE, kind(path)), (header::CACHE_CONTROL, cache)];
    (headers, file.data.into_owned()).into_response()
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        _ => "application/octet-stream",
    }
}

/// What every answer carries, pages and data alike.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

fn dress(answer: &mut Response) {
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_outside_the_build_are_not_found() {
        for path in ["../Cargo.toml", "nothing.js", "", "../../src/lib.rs"] {
            assert_eq!(asset(path).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    /// Text is only ever put into the pages as text.
    #[test]
    fn the_pages_never_make_markup_of_text() {
        fn look(folder: &std::path::Path) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    look(&path);
                } else if path.extension().is_some_and(|kind| kind == "ts" || kind == "tsx") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    for word in [
                        "dangerouslySetInnerHTML",
                        "innerHTML",
                        "outerHTML",
                        "insertAdjacentHTML",
                        "document.write",
                        "eval(",
                    ] {
                        assert!(!text.contains(word), "{} has {word}", path.display());
                    }
                }
            }
        }
        look(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/src"));
    }
}
