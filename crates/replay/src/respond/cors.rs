//! Cross-origin requests. A recording allows the origin that asked when it was made; a replay allows the one that asks.

use bytes::Bytes;

use crate::{Headers, Request, Response};

/// Replaces the allowed origin of a recording by the request's. A wildcard stays, and so does the absence of permission.
pub fn echo_origin(request: &Request, headers: &mut Headers) {
    let Some(origin) = request.headers.get("origin").map(<[u8]>::to_vec) else { return };
    let is_specific = headers.text("access-control-allow-origin").is_some_and(|allowed| allowed != "*");
    if is_specific {
        headers.set("Access-Control-Allow-Origin", origin);
    }
}

/// Answers a preflight that was not recorded, because the browser had cached the permission or sent none. It permits what
/// it is asked; the recording of the request itself decides what the page may read.
pub fn preflight(request: &Request) -> Option<Response> {
    let method = request.headers.get("access-control-request-method")?.to_vec();
    let origin = request.headers.get("origin")?.to_vec();
    if !request.method.eq_ignore_ascii_case("OPTIONS") {
        return None;
    }
    let mut headers = Headers::new();
    headers.push("Access-Control-Allow-Origin", origin);
    headers.push("Access-Control-Allow-Methods", method);
    if let Some(wanted) = request.headers.get("access-control-request-headers") {
        headers.push("Access-Control-Allow-Headers", wanted.to_vec());
    }
    headers.push("Access-Control-Allow-Credentials", "true");
    if request.headers.contains("access-control-request-private-network") {
        headers.push("Access-Control-Allow-Private-Network", "true");
    }
    headers.push("Vary", "Origin");
    Some(Response { status: 204, reason: "No Content".into(), headers, body: Bytes::new() })
}
