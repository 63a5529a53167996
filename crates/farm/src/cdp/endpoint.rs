//! The HTTP side of a lease's CDP endpoint: the descriptions below `/json` and the upgrade to a WebSocket.

use std::sync::Arc;

use axum::{
    Json,
    extract::{FromRequestParts, Request, WebSocketUpgrade},
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use browser::{BrowserError, TenantBrowser, protocol as p};
use serde_json::{Value, json};

use super::{
    MAX_MESSAGE_BYTES,
    client::Client,
    description,
    outbox::{CloseReason, outbox},
    socket,
};
use crate::{
    access::AccessSegment,
    error::ApiError,
    pool::{Pool, SocketGuard},
    public_address::PublicAddress,
};

/// What a client asks for below `/cdp/<segment>/`.
enum Resource<'a> {
    Version,
    List,
    Protocol,
    Browser,
    Page(&'a str),
}

impl<'a> Resource<'a> {
    fn parse(path: &'a str) -> Option<Self> {
        let path = path.trim_matches('/');
        Some(match path {
            "" | "devtools/browser" => Self::Browser,
            "json/version" => Self::Version,
            "json" | "json/list" => Self::List,
            "json/protocol" => Self::Protocol,
            _ => match path.strip_prefix("devtools/page/") {
                Some(target) => Self::Page(target),
                None if path.starts_with("devtools/browser/") => Self::Browser,
                None => return None,
            },
        })
    }
}

/// Serves a request to the endpoint of a lease of this pool. `segment` is the part of the path with the secret, `path` the
/// part behind it.
pub(crate) async fn serve(
    pool: &Pool,
    access: &AccessSegment<'_>,
    segment: &str,
    path: &str,
    request: Request,
) -> Result<Response, ApiError> {
    let open = pool.open_cdp(access)?;
    let unknown = || ApiError::NotFound(format!("/cdp/…/{}", path.trim_matches('/')));
    let resource = Resource::parse(path).ok_or_else(unknown)?;
    let no_host = || ApiError::BadRequest("the request has no valid Host header".into());
    let address = PublicAddress::of(request.headers()).ok_or_else(no_host)?;
    match resource {
        Resource::Version => version(open.tenant(), &address, segment).await,
        Resource::List => list(open.tenant(), &address, segment).await,
        Resource::Protocol => protocol(pool).await,
        Resource::Browser => upgrade(open, None, request).await,
        Resource::Page(target) => {
            let is_known = pages(open.tenant()).await?.iter().any(|page| page["targetId"] == target);
            if is_known { upgrade(open, Some(target.to_owned()), request).await } else { Err(unknown()) }
        }
    }
}

async fn version(
    tenant: &TenantBrowser,
    address: &PublicAddress,
    segment: &str,
) -> Result<Response, ApiError> {
    let version: Value = tenant.root_call(p::BROWSER_GET_VERSION, &json!({})).await?;
    let answer = json!({
        "Browser": version["product"], "Protocol-Version": version["protocolVersion"],
        "User-Agent": version["userAgent"], "V8-Version": version["jsVersion"],
        "webSocketDebuggerUrl": address.socket_url(segment, "devtools/browser"),
    });
    Ok(Json(answer).into_response())
}

async fn protocol(pool: &Pool) -> Result<Response, ApiError> {
    let description = pool.protocol_description(description::reduce).await?;
    Ok(([(CONTENT_TYPE, "application/json; charset=UTF-8")], description).into_response())
}

/// The pages of the tenant's own context.
async fn pages(tenant: &TenantBrowser) -> Result<Vec<Value>, BrowserError> {
    let filter = json!({"filter": [{"type": "page"}]});
    let mut reply: Value = tenant.root_call(p::TARGET_GET_TARGETS, &filter).await?;
    let mut pages = reply["targetInfos"].as_array_mut().map(std::mem::take).unwrap_or_default();
    pages.retain(|page| page["browserContextId"] == tenant.context().id());
    Ok(pages)
}

async fn list(tenant: &TenantBrowser, address: &PublicAddress, segment: &str) -> Result<Response, ApiError> {
    let describe = |page: &Value| {
        let id = page["targetId"].as_str().unwrap_or_default();
        json!({
            "description": "", "id": id, "title": page["title"], "type": "page", "url": page["url"],
            "webSocketDebuggerUrl": address.socket_url(segment, &format!("devtools/page/{id}")),
        })
    };
    let pages: Vec<Value> = pages(tenant).await?.iter().map(describe).collect();
    Ok(Json(pages).into_response())
}

/// An open connection to the endpoint of a lease.
pub(crate) struct OpenCdp {
    pub(crate) pool: Pool,
    pub(crate) tenant: TenantBrowser,
    pub(crate) socket: SocketGuard,
}

impl OpenCdp {
    fn tenant(&self) -> &TenantBrowser {
        &self.tenant
    }
}

async fn upgrade(open: OpenCdp, page: Option<String>, request: Request) -> Result<Response, ApiError> {
    let (mut parts, _) = request.into_parts();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &()).await.map_err(|error| {
        ApiError::BadRequest(format!("this address is for WebSocket connections; see /json/version: {error}"))
    })?;
    open.socket.check_limit()?;
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(move |socket| connect(open, page, socket)))
}

async fn connect(open: OpenCdp, page: Option<String>, websocket: axum::extract::ws::WebSocket) {
    let OpenCdp { pool, tenant, socket: guard } = open;
    let (outbox, queue) = outbox();
    let id = *guard.id();
    let release = {
        let pool = pool.clone();
        Box::new(move || drop(pool.release(&id)))
    };
    let tasks = pool.tasks().clone();
    let client = match Client::open(tenant, page.as_deref(), outbox.clone(), tasks.clone(), release).await {
        Ok(client) => client,
        Err(error) => {
            tracing::debug!(%error, "cannot open the browser session of a CDP client");
            return;
        }
    };
    let ended = {
        let (guard, outbox) = (guard.ended(), outbox.clone());
        async move {
            guard.await;
            outbox.close(CloseReason::LEASE_ENDED);
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = socket::run(websocket, Arc::clone(&client), outbox, queue) => {}
        () = ended => {}
    }
    drop(client);
    drop(guard);
}
