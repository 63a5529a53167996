//! The HTTP side of the live view: the page, its files, and the upgrade to a WebSocket.

use axum::{
    extract::{FromRequestParts, Request, WebSocketUpgrade},
    http::{HeaderName, header},
    response::{Html, IntoResponse, Response},
};

use super::{MAX_MESSAGE_BYTES, viewer};
use crate::{
    access::AccessSegment,
    error::ApiError,
    pool::{OpenLive, Pool},
};

/// Allows only our own files, and nothing inline.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     frame-ancestors 'none'; form-action 'none'";

/// The address contains a secret: nothing of it is cached or told to other sites.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// The files of the page: name, type, content.
const ASSETS: [(&str, &str, &str); 4] = [
    ("live.css", "text/css; charset=utf-8", include_str!("page/live.css")),
    ("live.js", "text/javascript; charset=utf-8", include_str!("page/live.js")),
    ("panel.js", "text/javascript; charset=utf-8", include_str!("page/panel.js")),
    ("input.js", "text/javascript; charset=utf-8", include_str!("page/input.js")),
];

/// Serves a file of the page. The files are the same for all leases.
pub(crate) fn asset(name: &str) -> Result<Response, ApiError> {
    let unknown = || ApiError::NotFound("/live/assets/…".to_owned());
    let (_, content_type, text) = ASSETS.iter().find(|(known, ..)| *known == name).ok_or_else(unknown)?;
    let headers = [
        (header::CONTENT_TYPE, *content_type),
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, *text).into_response())
}

/// Serves a request to the live view of a lease of this pool. `path` is the part behind the secret.
pub(crate) async fn serve(
    pool: &Pool,
    access: &AccessSegment<'_>,
    path: &str,
    request: Request,
) -> Result<Response, ApiError> {
    let open = pool.open_live(access)?;
    match path.trim_matches('/') {
        "" => Ok((HEADERS, Html(include_str!("page/page.html"))).into_response()),
        "socket" => upgrade(open, request).await,
        other => Err(ApiError::NotFound(format!("/live/…/{other}"))),
    }
}

async fn upgrade(open: OpenLive, request: Request) -> Result<Response, ApiError> {
    let (mut parts, _) = request.into_parts();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &()).await.map_err(|error| {
        ApiError::BadRequest(format!("this address is for the WebSocket of the live view: {error}"))
    })?;
    // Larger messages than ours end the connection without a reason; slightly larger ones get one.
    let upgrade = upgrade.max_message_size(4 * MAX_MESSAGE_BYTES).max_frame_size(4 * MAX_MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(move |socket| viewer::run(open.into_viewer(), socket)))
}
