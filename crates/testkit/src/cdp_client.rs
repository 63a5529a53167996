//! A client of a lease's CDP endpoint that sends any message, as no library would.

use std::{collections::VecDeque, time::Duration};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, protocol::CloseFrame},
};

/// No reply takes longer than this unless it hangs.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

pub struct CdpClient {
    socket: WebSocketStream<TcpStream>,
    next_id: i64,
    /// Events that were received while a reply was awaited.
    events: VecDeque<Value>,
}

impl CdpClient {
    /// Connects to a `cdp_url` or to an address below it. The error is the status of the response.
    pub async fn try_connect(url: &str) -> Result<Self, u16> {
        let address = url.split_once("://").expect("a URL").1;
        let host = address.split('/').next().expect("a host");
        let stream = TcpStream::connect(host).await.expect("the farm accepts connections");
        match client_async(format!("ws://{address}"), stream).await {
            Ok((socket, _)) => Ok(Self { socket, next_id: 1, events: VecDeque::new() }),
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{url}: {error}"),
        }
    }

    pub async fn connect(url: &str) -> Self {
        Self::try_connect(url).await.unwrap_or_else(|status| panic!("{url}: {status}"))
    }

    /// Sends text that need not be a message.
    pub async fn send_text(&mut self, text: &str) {
        let _ = self.socket.send(Message::text(text)).await;
    }

    /// Sends a call and returns its number.
    pub async fn send(&mut self, session: Option<&str>, method: &str, params: &Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        let mut call = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            call["sessionId"] = session.into();
        }
        self.send_text(&call.to_string()).await;
        id
    }

    /// Returns the next message; the close frame if the connection was closed.
    async fn next(&mut self) -> Result<Value, Option<CloseFrame>> {
        loop {
            let next = tokio::time::timeout(REPLY_TIMEOUT, self.socket.next()).await;
            match next.expect("a message in time") {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Close(frame))) => return Err(frame),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// Returns the reply to a call: its result or its error.
    pub async fn reply(&mut self, id: i64) -> Result<Value, Value> {
        self.try_reply(id).await.unwrap_or_else(|frame| panic!("closed: {frame:?}"))
    }

    /// Like [`Self::reply`], for a connection that may be closed.
    pub async fn try_reply(&mut self, id: i64) -> Result<Result<Value, Value>, Option<CloseFrame>> {
        loop {
            let mut message = self.next().await?;
            if message["id"] == id {
                return Ok(match message.get_mut("result") {
                    Some(result) => Ok(result.take()),
                    None => Err(message["error"].take()),
                });
            }
            self.events.push_back(message);
        }
    }

    pub async fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(session, method, &params).await;
        self.reply(id).await
    }

    /// Like [`Self::call`] for a call that must succeed.
    pub async fn ok(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        let outcome = self.call(session, method, params).await;
        outcome.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Returns the parameters of the next event that matches.
    pub async fn event(&mut self, method: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let is_wanted = |message: &Value| message["method"] == method && matches(&message["params"]);
        loop {
            if let Some(index) = self.events.iter().position(is_wanted) {
                return self.events.remove(index).expect("it is there")["params"].take();
            }
            let message = self.next().await.unwrap_or_else(|frame| panic!("closed: {frame:?}"));
            self.events.push_back(message);
        }
    }

    /// Takes every message that was received and not asked for.
    pub fn take_events(&mut self) -> Vec<Value> {
        self.events.drain(..).collect()
    }

    /// Attaches to a target and returns the session.
    pub async fn attach(&mut self, target: &str) -> String {
        let params = json!({"targetId": target, "flatten": true});
        let reply = self.ok(None, "Target.attachToTarget", params).await;
        reply["sessionId"].as_str().expect("a session").to_owned()
    }

    /// Returns the ids of the pages that the client sees.
    pub async fn pages(&mut self) -> Vec<String> {
        let reply = self.ok(None, "Target.getTargets", json!({})).await;
        let infos = reply["targetInfos"].as_array().expect("a list").iter();
        let pages = infos.filter(|info| info["type"] == "page");
        pages.map(|info| info["targetId"].as_str().expect("an id").to_owned()).collect()
    }

    /// Evaluates an expression in a page.
    pub async fn evaluate(&mut self, session: &str, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut reply = self.ok(Some(session), "Runtime.evaluate", params).await;
        assert!(reply.get("exceptionDetails").is_none(), "{expression}: {reply}");
        reply["result"]["value"].take()
    }

    /// Waits until the farm closes the connection. Returns the code and text of its close frame.
    pub async fn closed(&mut self) -> Option<(u16, String)> {
        loop {
            if let Err(frame) = self.next().await {
                return frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
            }
        }
    }
}
