//! What to send for a request when its recording is known: pure functions on recorded response and request.

mod conditional;
mod cors;
mod dates;
mod range;

pub use conditional::not_modified;
pub use cors::{echo_origin, preflight};
pub use dates::shift_dates;
pub use range::{is_complete_part, select_range};

use crate::{Request, Response, encoding};

/// Headers that concern one connection, or a protocol that a replay does not speak.
const CONNECTION_HEADERS: [&str; 9] = [
    "connection",
    "keep-alive",
    "transfer-encoding",
    "proxy-connection",
    "proxy-authenticate",
    "trailer",
    "upgrade",
    "alt-svc",
    "http2-settings",
];

/// Returns the response to send: decoded if the client does not accept its encoding, 304 if the client has it already,
/// the requested range, and with the origin that asks.
pub fn respond(request: &Request, recorded: &Response) -> Response {
    let mut response = complete(recorded);
    if !encoding::is_accepted(&response.headers, request.headers.text("accept-encoding")) {
        decode(&mut response);
    }
    let is_upgrade = response.status == 101;
    if let Some(not_modified) = not_modified(request, &response) {
        response = not_modified;
    } else if let Some(part) = select_range(request, &response) {
        response = part;
    }
    response.headers.retain(|name, _| {
        let is_connection = CONNECTION_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
        let is_archive = name.len() > 15 && name[..15].eq_ignore_ascii_case("x-archive-orig-");
        (is_upgrade || !is_connection) && !is_archive
    });
    let has_body =
        !matches!(response.status, 100..200 | 204 | 304) && !request.method.eq_ignore_ascii_case("HEAD");
    if has_body {
        response.headers.set("Content-Length", response.body.len().to_string());
    } else {
        response.body.clear();
    }
    echo_origin(request, &mut response.headers);
    response
}

/// A part that is the whole is a complete response.
fn complete(recorded: &Response) -> Response {
    let mut response = recorded.clone();
    if response.status == 206 && is_complete_part(&response.headers) {
        (response.status, response.reason) = (200, "OK".into());
        response.headers.remove("content-range");
    }
    response
}

fn decode(response: &mut Response) {
    let decoded = encoding::decode(&response.headers, &response.body).map(std::borrow::Cow::into_owned);
    if let Some(decoded) = decoded {
        response.headers.remove("content-encoding");
        response.body = decoded.into();
    }
}

#[cfg(test)]
mod tests;
