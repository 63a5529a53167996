//! A session of an environment server that is not OpenEnv's client: it sends any message, in any order.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, Utf8Bytes, client::IntoClientRequest},
};

/// No message takes longer than this unless it hangs.
const TIMEOUT: Duration = Duration::from_mins(2);

pub struct EnvClient {
    socket: WebSocketStream<TcpStream>,
}

impl EnvClient {
    /// Connects with these headers. The error is the status of the response.
    pub async fn try_connect(url: &str, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let address = url.split_once("://").expect("a URL").1;
        let host = address.split('/').next().unwrap_or_default();
        let stream = TcpStream::connect(host).await.expect("the server accepts connections");
        let mut request = format!("ws://{address}/ws").into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self { socket }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn connect(url: &str) -> Self {
        Self::try_connect(url, &[]).await.unwrap_or_else(|status| panic!("the server answers {status}"))
    }

    pub async fn send_text(&mut self, text: &str) {
        let _ = self.socket.send(Message::text(text)).await;
    }

    pub async fn send(&mut self, kind: &str, data: &Value) {
        self.send_text(&json!({"type": kind, "data": data}).to_string()).await;
    }

    pub async fn send_binary(&mut self, bytes: &[u8]) {
        let _ = self.socket.send(Message::binary(bytes.to_vec())).await;
    }

    /// Returns the next message, or the code with which the server closed the connection.
    pub async fn receive(&mut self) -> Result<Value, Option<u16>> {
        self.receive_text().await.map(|text| serde_json::from_str(&text).expect("JSON"))
    }

    /// Like [`EnvClient::receive`], without reading the message.
    pub async fn receive_text(&mut self) -> Result<Utf8Bytes, Option<u16>> {
        loop {
            let next = tokio::time::timeout(TIMEOUT, self.socket.next()).await.expect("a message in time");
            return match next {
                Some(Ok(Message::Text(text))) => Ok(text),
                Some(Ok(Message::Close(frame))) => Err(frame.map(|frame| frame.code.into())),
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => Err(None),
            };
        }
    }

    /// Sends a message and returns the response.
    pub async fn ask(&mut self, kind: &str, data: &Value) -> Value {
        self.send(kind, data).await;
        self.receive().await.unwrap_or_else(|code| panic!("closed with {code:?} after {kind}"))
    }

    /// Sends a message and returns the data of the observation that must follow.
    pub async fn observe(&mut self, kind: &str, data: &Value) -> Value {
        let mut response = self.ask(kind, data).await;
        assert_eq!(response["type"], "observation", "{kind} {data}: {response}");
        response["data"].take()
    }

    /// Sends a message and returns the code of the error that must follow.
    pub async fn error_code(&mut self, kind: &str, data: &Value) -> String {
        let response = self.ask(kind, data).await;
        assert_eq!(response["type"], "error", "{kind} {data}: {response}");
        response["data"]["code"].as_str().expect("a code").to_owned()
    }
}
