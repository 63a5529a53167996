//! Runs JavaScript in the page of a lease, through the lease's CDP endpoint. Only programs that judge or prepare a task use
//! it; the commands of an agent run no scripts.

use futures_util::{SinkExt, StreamExt};
use reqwest::{
    StatusCode,
    header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE},
};
use serde_json::{Value, json};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{Role, WebSocketConfig},
    },
};

use super::{CdpUrl, ClientError, FarmClient};
use crate::http::{Deadline, excerpt, send_request};

/// The largest reply that is read.
const MAX_REPLY_BYTES: usize = 16 << 20;
/// The number of the only call of a connection.
const CALL_ID: u64 = 1;

/// Why a script has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("the script failed: {0}")]
    Thrown(String),
    #[error("the browser has no page")]
    NoPage,
    #[error("the script did not end in time")]
    Timeout,
    #[error("cannot run a script in the page: {0}")]
    Connection(String),
}

impl FarmClient {
    /// Evaluates an expression in the page of a lease and returns its value; a promise is awaited. Of several tabs, the
    /// one at `page_url` is used. A value that JSON cannot express, such as `NaN`, is returned as its name.
    pub async fn evaluate(
        &self,
        cdp_url: &CdpUrl,
        page_url: Option<&str>,
        expression: &str,
        deadline: Deadline,
    ) -> Result<Value, ScriptError> {
        let evaluation = async {
            let page = self.find_page(cdp_url, page_url).await?;
            let mut socket = self.connect_page(cdp_url, &page).await?;
            let params = json!({
                "expression": expression, "awaitPromise": true, "returnByValue": true,
                // Also ends a script that never waits.
                "timeout": deadline.remaining().as_millis() as u64,
            });
            let call = json!({"id": CALL_ID, "method": "Runtime.evaluate", "params": params});
            socket.send(Message::text(call.to_string())).await.map_err(connection)?;
            let reply = receive_reply(&mut socket).await?;
            let _ = socket.close(None).await;
            read_value(&reply)
        };
        tokio::time::timeout_at(deadline.instant(), evaluation).await.unwrap_or(Err(ScriptError::Timeout))
    }

    /// Returns the id of the page at `page_url`, otherwise of the first page.
    async fn find_page(&self, cdp_url: &CdpUrl, page_url: Option<&str>) -> Result<String, ScriptError> {
        let request = self.http.get(format!("{}/json/list", cdp_url.as_str()));
        let response = send_request(request, self.options.operation_timeout, MAX_REPLY_BYTES).await;
        let response = response.map_err(|error| connection(ClientError::from(error)))?;
        if !response.status.is_success() {
            return Err(refused(response.status));
        }
        let pages: Vec<Value> = serde_json::from_slice(&response.body).map_err(connection)?;
        let current = pages.iter().find(|page| page_url.is_some_and(|url| page["url"] == url));
        let id = current.or(pages.first()).and_then(|page| page["id"].as_str());
        id.map(str::to_owned).ok_or(ScriptError::NoPage)
    }

    async fn connect_page(
        &self,
        cdp_url: &CdpUrl,
        page: &str,
    ) -> Result<WebSocketStream<reqwest::Upgraded>, ScriptError> {
        let request = self
            .http
            .get(format!("{}/devtools/page/{page}", cdp_url.as_str()))
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, websocket_key());
        let response = request.send().await.map_err(without_url)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refused(response.status()));
        }
        let stream = response.upgrade().await.map_err(without_url)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_REPLY_BYTES))
            .max_frame_size(Some(MAX_REPLY_BYTES));
        Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
    }
}

/// A random key, as the WebSocket handshake requires one.
fn websocket_key() -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(uuid::Uuid::new_v4().as_bytes())
}

async fn receive_reply(socket: &mut WebSocketStream<reqwest::Upgraded>) -> Result<Value, ScriptError> {
    while let Some(message) = socket.next().await {
        match message.map_err(connection)? {
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).map_err(connection)?;
                if message["id"] == CALL_ID {
                    return Ok(message);
                }
            }
            Message::Close(_) => break,
            _ => {}
        }
    }
    Err(ScriptError::Connection("the connection was closed".into()))
}

/// Reads the reply to `Runtime.evaluate`.
fn read_value(reply: &Value) -> Result<Value, ScriptError> {
    if let Some(error) = reply.get("error") {
        let message = error["message"].as_str().unwrap_or("unknown error");
        return Err(ScriptError::Connection(excerpt(message)));
    }
    let result = &reply["result"];
    if let Some(details) = result.get("exceptionDetails") {
        let description = details["exception"]["description"].as_str().or(details["text"].as_str());
        return Err(ScriptError::Thrown(excerpt(description.unwrap_or("unknown error"))));
    }
    let object = &result["result"];
    Ok(object.get("value").or(object.get("unserializableValue")).cloned().unwrap_or(Value::Null))
}

fn refused(status: StatusCode) -> ScriptError {
    ScriptError::Connection(format!("the farm answered {status}"))
}

fn connection(error: impl std::fmt::Display) -> ScriptError {
    ScriptError::Connection(excerpt(&error.to_string()))
}

/// The address contains a secret, so it is removed from messages.
fn without_url(error: reqwest::Error) -> ScriptError {
    connection(error.without_url())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        let value = |result: Value| read_value(&json!({"id": 1, "result": {"result": result}}));
        assert_eq!(value(json!({"type": "number", "value": 0.5})), Ok(json!(0.5)));
        assert_eq!(value(json!({"type": "undefined"})), Ok(Value::Null));
        assert_eq!(value(json!({"type": "number", "unserializableValue": "NaN"})), Ok(json!("NaN")));
        let thrown = json!({"result": {"result": {}, "exceptionDetails": {
            "text": "Uncaught", "exception": {"description": "ReferenceError: core is not defined\n    at <anonymous>"},
        }}});
        let message = read_value(&thrown).unwrap_err().to_string();
        assert!(message.starts_with("the script failed: ReferenceError: core is not defined"), "{message}");
        let refused = json!({"error": {"code": -32000, "message": "no such session"}});
        assert_eq!(read_value(&refused), Err(ScriptError::Connection("no such session".into())));
    }
}
