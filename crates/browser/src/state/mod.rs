//! The storage state of an instance: cookies, and the storage of each origin, saved and restored in Playwright's format.
//! The storage of an origin is reached in a page of its own: an empty document of that origin, for which no request
//! leaves the browser.

use std::{sync::Arc, time::Duration};

use cdp::{CallError, Connection, EventHandler, Session, protocol as p};
use proto::storage_state::{Cookie, OriginState, SameSite, StorageState};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    context::{Context, close_target},
    error::BrowserError,
    page::SETUP_TIMEOUT,
};

const SCRIPT: &str = include_str!("storage.js");
/// The longest wait for the storage of one origin.
const ORIGIN_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
struct Cookies {
    cookies: Vec<BrowserCookie>,
}

/// A cookie, as the browser describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BrowserCookie {
    name: String,
    value: String,
    domain: String,
    path: String,
    expires: f64,
    http_only: bool,
    secure: bool,
    same_site: Option<SameSite>,
    partition_key: Option<PartitionKey>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartitionKey {
    top_level_site: String,
}

/// Returns the cookies of a context and the storage of the origins that it has visited.
pub(crate) async fn collect(
    connection: &Connection,
    context: &Arc<Context>,
) -> Result<StorageState, BrowserError> {
    let params = json!({"browserContextId": context.id()});
    let Cookies { cookies } = connection.root().call(p::STORAGE_GET_COOKIES, &params).await?;
    let mut origins = Vec::new();
    let visited = context.origins();
    if !visited.is_empty() {
        let page = StatePage::open(connection, context).await?;
        for origin in visited {
            let state = page.collect(&origin).await?;
            if !(state.local_storage.is_empty() && state.indexed_db.is_empty() && state.opfs.is_empty()) {
                origins.push(state);
            }
        }
    }
    Ok(StorageState { cookies: cookies.into_iter().map(from_browser).collect(), origins })
}

/// Replaces the cookies and the storage of a context. A state that the browser refuses changes nothing.
pub(crate) async fn replace(
    connection: &Connection,
    context: &Arc<Context>,
    state: &StorageState,
) -> Result<(), BrowserError> {
    let previous = collect(connection, context).await?;
    let replaced = overwrite(connection, context, state).await;
    if let Err(BrowserError::BadArgument(_)) = &replaced {
        overwrite(connection, context, &previous).await?;
    }
    replaced
}

/// Clears the cookies and the storage of a context and sets those of `state`.
pub(crate) async fn overwrite(
    connection: &Connection,
    context: &Arc<Context>,
    state: &StorageState,
) -> Result<(), BrowserError> {
    let id = json!({"browserContextId": context.id()});
    connection.root().run(p::STORAGE_CLEAR_COOKIES, &id).await?;
    let outdated = context.origins();
    if !(outdated.is_empty() && state.origins.is_empty()) {
        let page = StatePage::open(connection, context).await?;
        for origin in outdated.iter().chain(state.origins.iter().map(|state| &state.origin)) {
            let params = json!({"origin": origin, "storageTypes": "all"});
            page.session.run(p::STORAGE_CLEAR_DATA_FOR_ORIGIN, &params).await?;
        }
        for origin in &state.origins {
            page.restore(origin).await?;
            context.record_origin(&origin.origin);
        }
    }
    set_cookies(connection, context, &state.cookies).await
}

async fn set_cookies(
    connection: &Connection,
    context: &Context,
    cookies: &[Cookie],
) -> Result<(), BrowserError> {
    if cookies.is_empty() {
        return Ok(());
    }
    let set = async |cookies: &[Cookie]| {
        let cookies: Vec<Value> = cookies.iter().map(to_browser).collect();
        let params = json!({"cookies": cookies, "browserContextId": context.id()});
        connection.root().run(p::STORAGE_SET_COOKIES, &params).await
    };
    let Err(error) = set(cookies).await else { return Ok(()) };
    // The browser does not say which cookie it refuses.
    for (index, cookie) in cookies.iter().enumerate() {
        if set(std::slice::from_ref(cookie)).await.is_err() {
            return Err(BrowserError::BadArgument(format!(
                "storage_state: the browser refuses cookie {index} ({:?} of {:?}): {error}",
                cookie.name, cookie.domain
            )));
        }
    }
    Err(error.into())
}

fn from_browser(cookie: BrowserCookie) -> Cookie {
    Cookie {
        name: cookie.name,
        value: cookie.value,
        domain: cookie.domain,
        path: cookie.path,
        expires: cookie.expires,
        http_only: cookie.http_only,
        secure: cookie.secure,
        same_site: cookie.same_site.unwrap_or_default(),
        partition_key: cookie.partition_key.map(|key| key.top_level_site),
    }
}

fn to_browser(cookie: &Cookie) -> Value {
    let mut params = json!({
        "name": cookie.name, "value": cookie.value, "domain": cookie.domain, "path": cookie.path, "expires": cookie.expires,
        "httpOnly": cookie.http_only, "secure": cookie.secure,
    });
    // Chromium drops a cookie with `SameSite=None` that is not secure. Other browsers keep such cookies.
    if cookie.secure || cookie.same_site != SameSite::None {
        params["sameSite"] = json!(cookie.same_site);
    }
    if let Some(site) = &cookie.partition_key {
        params["partitionKey"] = json!({"topLevelSite": site, "hasCrossSiteAncestor": false});
    }
    params
}

/// A page that shows an empty document of any origin. Dropping it closes it.
struct StatePage {
    session: Session,
    connection: Connection,
    target: String,
}

/// Answers every request of the page with an empty document.
struct EmptyDocuments;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paused {
    request_id: String,
}

impl EventHandler for EmptyDocuments {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]) {
        if method != p::FETCH_REQUEST_PAUSED {
            return;
        }
        if let Ok(Paused { request_id }) = cdp::parse_params(params) {
            let headers = json!([{"name": "content-type", "value": "text/html"}]);
            let answer = json!({"requestId": request_id, "responseCode": 200, "responseHeaders": headers});
            session.send_no_reply(p::FETCH_FULFILL_REQUEST, &answer);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigated {
    error_text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    result: EvaluatedValue,
    exception_details: Option<Value>,
}

#[derive(Deserialize)]
struct EvaluatedValue {
    #[serde(default)]
    value: Value,
}

impl StatePage {
    async fn open(connection: &Connection, context: &Arc<Context>) -> Result<Self, BrowserError> {
        let attached = context.open_target(connection, (800, 600)).await?;
        let session = connection.attach(&attached.session, Arc::new(EmptyDocuments));
        let page = Self { session, connection: connection.clone(), target: attached.target };
        let all = json!({"patterns": [{"urlPattern": "*"}]});
        for (method, params) in [
            (p::PAGE_ENABLE, json!({})),
            (p::NETWORK_ENABLE, json!({})),
            (p::NETWORK_SET_BYPASS_SERVICE_WORKER, json!({"bypass": true})),
            (p::FETCH_ENABLE, all),
            (p::RUNTIME_RUN_IF_WAITING_FOR_DEBUGGER, json!({})),
        ] {
            page.session.send(method, &params).within(SETUP_TIMEOUT).await?;
        }
        Ok(page)
    }

    async fn collect(&self, origin: &str) -> Result<OriginState, BrowserError> {
        let mut state: Value = self.run(origin, "collect", &Value::Null).await?;
        state["origin"] = origin.into();
        serde_json::from_value(state).map_err(|error| {
            BrowserError::Internal(format!("the storage of {origin} is unreadable: {error}"))
        })
    }

    async fn restore(&self, state: &OriginState) -> Result<(), BrowserError> {
        let argument =
            serde_json::to_value(state).map_err(|error| BrowserError::Internal(error.to_string()))?;
        self.run::<Value>(&state.origin, "restore", &argument).await.map(drop)
    }

    /// Runs a function of the script in an empty document of the origin.
    async fn run<T: DeserializeOwned>(
        &self,
        origin: &str,
        function: &str,
        argument: &Value,
    ) -> Result<T, BrowserError> {
        let refused =
            |reason: String| BrowserError::BadArgument(format!("storage_state of {origin}: {reason}"));
        let params = json!({"url": format!("{origin}/")});
        let navigated = self.session.call_within(ORIGIN_TIMEOUT, p::PAGE_NAVIGATE, &params).await;
        let error = match navigated {
            Ok(Navigated { error_text }) => error_text,
            Err(CallError::Rejected { message, .. }) => Some(message),
            Err(error) => return Err(error.into()),
        };
        if let Some(error) = error {
            return Err(refused(error));
        }
        let expression = format!("({SCRIPT}).{function}({argument})");
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let evaluated: Evaluated =
            self.session.call_within(ORIGIN_TIMEOUT, p::RUNTIME_EVALUATE, &params).await?;
        if let Some(exception) = evaluated.exception_details {
            let reason = exception["exception"]["description"].as_str().unwrap_or("it cannot be used");
            return Err(refused(reason.lines().next().unwrap_or_default().to_owned()));
        }
        serde_json::from_value(evaluated.result.value)
            .map_err(|error| BrowserError::Internal(format!("the storage script: {error}")))
    }
}

impl Drop for StatePage {
    fn drop(&mut self) {
        close_target(&self.connection, &self.target);
    }
}
