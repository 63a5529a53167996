//! Forwards a request to a remote node together with the stream that it may upgrade to, such as a WebSocket.

use std::time::Duration;

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use http_body_util::Full;
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;

use super::remote::{RemoteNode, source_chain};
use crate::{error::ApiError, public_address::PublicAddress, tasks::Tasks};

/// The headers of a request that are passed on: those of the upgrade, and what the client accepts.
const REQUEST_HEADERS: &[HeaderName] = &[
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
    header::SEC_WEBSOCKET_PROTOCOL,
    header::ACCEPT,
];
const RESPONSE_HEADERS: &[HeaderName] = &[
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_ACCEPT,
    header::SEC_WEBSOCKET_PROTOCOL,
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_SECURITY_POLICY,
    header::CACHE_CONTROL,
    header::REFERRER_POLICY,
    header::X_CONTENT_TYPE_OPTIONS,
];
/// The longest wait for the node to upgrade the connection after it has said so.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(10);

fn copy_headers(from: &HeaderMap, to: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
}

impl RemoteNode {
    /// Passes a request on to the same path of the node. If the node upgrades the connection, its stream and that of our
    /// client are joined until either ends.
    pub(crate) async fn forward_stream(
        &self,
        path: &str,
        mut request: Request,
        tasks: &Tasks,
    ) -> Result<Response, ApiError> {
        let client_side = request.extensions_mut().remove::<OnUpgrade>();
        let mut forwarded = hyper::Request::builder()
            .method(request.method().clone())
            .uri(format!("{}{path}", self.url.trim_end_matches('/')))
            .body(Full::<Bytes>::default())
            .map_err(|error| self.unreachable(&error))?;
        copy_headers(request.headers(), forwarded.headers_mut(), REQUEST_HEADERS);
        if let Some(address) = PublicAddress::of(request.headers()) {
            let headers = forwarded.headers_mut();
            if let Ok(host) = address.host().parse() {
                headers.insert("x-forwarded-host", host);
            }
            headers.insert("x-forwarded-proto", header::HeaderValue::from_static(address.scheme()));
        }
        let sent = tokio::time::timeout(self.request_timeout, self.client.0.request(forwarded)).await;
        let mut response = match sent {
            Err(_) => return Err(self.unreachable("no response in time")),
            Ok(Err(error)) => return Err(self.unreachable(&source_chain(&error))),
            Ok(Ok(response)) => response,
        };
        if let (StatusCode::SWITCHING_PROTOCOLS, Some(client_side)) = (response.status(), client_side) {
            let node_side = on(&mut response);
            tasks.spawn_until_stopped("forward stream", join(client_side, node_side));
        }
        let mut passed = Response::new(Body::empty());
        *passed.status_mut() = response.status();
        copy_headers(response.headers(), passed.headers_mut(), RESPONSE_HEADERS);
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            *passed.body_mut() = Body::new(response.into_body());
        }
        Ok(passed)
    }
}

/// Copies bytes in both directions until either side ends.
async fn join(client_side: OnUpgrade, node_side: OnUpgrade) {
    let upgrades = tokio::time::timeout(UPGRADE_TIMEOUT, async { tokio::try_join!(client_side, node_side) });
    let Ok(Ok((client, node))) = upgrades.await else { return };
    let (mut client, mut node) = (TokioIo::new(client), TokioIo::new(node));
    if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut node).await {
        tracing::trace!(%error, "a forwarded stream ended with an error");
    }
}
