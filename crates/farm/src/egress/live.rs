//! Passes requests on to sites: plain HTTP is forwarded, everything else is a tunnel whose content is not read.

use http_body_util::BodyExt;
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;

use super::{
    ConnectError, Route,
    response::{ProxyResponse, full_body},
};
use crate::tasks::Tasks;

/// Headers meant for the proxy, which are not forwarded to the site.
const HOP_HEADERS: &[&str] = &["proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade"];

pub(crate) fn remove_hop_headers(headers: &mut HeaderMap) {
    for name in HOP_HEADERS {
        headers.remove(HeaderName::from_static(name));
    }
    headers.remove(CONNECTION);
}

pub(crate) fn host_and_port(uri: &Uri, default_port: u16) -> Result<(String, u16), ConnectError> {
    let host = uri.host().ok_or_else(|| ConnectError::Failed("the request has no host".into()))?;
    Ok((
        host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        uri.port_u16().unwrap_or(default_port),
    ))
}

pub(crate) async fn tunnel(
    mut request: Request<Incoming>,
    route: &Route,
    tasks: &Tasks,
) -> Result<ProxyResponse, ConnectError> {
    let (host, port) = host_and_port(request.uri(), 443)?;
    let (mut site, _) = route.open(&host, port).await?;
    tasks.spawn_until_stopped("tunnel", async move {
        if let Ok(upgraded) = hyper::upgrade::on(&mut request).await {
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(upgraded), &mut site).await;
        }
    });
    Ok(Response::new(full_body("")))
}

pub(super) async fn forward(
    mut request: Request<Incoming>,
    route: &Route,
) -> Result<ProxyResponse, ConnectError> {
    if request.uri().scheme_str() != Some("http") {
        return Err(ConnectError::Failed("only absolute http:// URLs are forwarded".into()));
    }
    let (host, port) = host_and_port(request.uri(), 80)?;
    let site = route.open_plain(&host, port).await?;
    let failed = |error: hyper::Error| ConnectError::Failed(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .handshake::<_, Incoming>(TokioIo::new(site))
        .await
        .map_err(failed)?;
    // Drives the exchange; ends with the response body or when either side disconnects.
    tokio::spawn(connection);
    let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
    remove_hop_headers(request.headers_mut());
    if let Ok(value) = HeaderValue::from_str(&authority) {
        request.headers_mut().entry(HOST).or_insert(value);
    }
    if let Some(upstream) = &route.upstream {
        // A proxy takes the whole URL.
        upstream.authorize(&mut request);
    } else {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() =
            path.parse().map_err(|_| ConnectError::Failed("the path cannot be forwarded".into()))?;
    }
    let response = sender.send_request(request).await.map_err(failed)?;
    if let Some(upstream) = &route.upstream {
        upstream.check_response(&response)?;
    }
    Ok(response.map(|body: Incoming| body.map_err(Into::into).boxed_unsync()))
}
