//! A model server that breaks the rules of HTTP: endless, slow, truncated, compressed or redirecting responses. It
//! writes raw TCP, so that no library corrects the bytes. Its list of models is always valid.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

/// How the server responds to a request.
#[derive(Clone, Debug)]
pub enum RogueReply {
    /// Sends these bytes, then closes the connection.
    Bytes(Vec<u8>),
    /// Sends the first bytes once and the second ones forever.
    Endless(Vec<u8>, Vec<u8>),
    /// Sends these bytes, then one space per interval, forever.
    Drip(Vec<u8>, Duration),
    /// Sends these bytes, then resets the connection.
    Reset(Vec<u8>),
}

impl RogueReply {
    /// A valid HTTP response with any body.
    pub fn http(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut bytes = head(status, headers);
        bytes.truncate(bytes.len() - 2);
        bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
        bytes.extend(body);
        Self::Bytes(bytes)
    }

    /// A valid chat completion.
    pub fn completion(text: &str) -> Self {
        let body = json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]});
        Self::http("200 OK", &["content-type: application/json"], body.to_string())
    }
}

/// Returns a response head, including the blank line at its end.
pub fn head(status: &str, headers: &[&str]) -> Vec<u8> {
    let headers: String = headers.iter().flat_map(|header| [header, "\r\n"]).collect();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

type Script = dyn Fn(usize, &str) -> RogueReply + Send + Sync;

/// Runs until dropped.
pub struct RogueServer {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    serving: AbortHandle,
}

impl RogueServer {
    /// The script gets the number of earlier requests and the body of this one.
    pub async fn start(script: impl Fn(usize, &str) -> RogueReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(AtomicUsize::new(0));
        let (count, script): (_, Arc<Script>) = (Arc::clone(&requests), Arc::new(script));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (count, script) = (Arc::clone(&count), Arc::clone(&script));
                // An error means that the client closed the connection, which the tests provoke.
                tokio::spawn(async move { drop(serve(stream, &count, &*script).await) });
            }
        });
        Self { address, requests, serving: serving.abort_handle() }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn request_count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for RogueServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut stream: TcpStream, requests: &AtomicUsize, script: &Script) -> std::io::Result<()> {
    let (start, body) = read_request(&mut stream).await?;
    let reply = if start.starts_with("GET ") {
        RogueReply::http("200 OK", &[], json!({"data": [{"id": "sim"}]}).to_string())
    } else {
        script(requests.fetch_add(1, Ordering::SeqCst), &body)
    };
    match reply {
        RogueReply::Bytes(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        }
        RogueReply::Endless(start, repeated) => {
            stream.write_all(&start).await?;
            loop {
                stream.write_all(&repeated).await?;
            }
        }
        RogueReply::Drip(start, pause) => {
            stream.write_all(&start).await?;
            loop {
                stream.write_all(b" ").await?;
                tokio::time::sleep(pause).await;
            }
        }
        RogueReply::Reset(bytes) => {
            stream.write_all(&bytes).await?;
            stream.set_zero_linger()
        }
    }
}

/// Reads the first line and the body of a request.
async fn read_request(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
                let first =
                    String::from_utf8_lossy(&bytes[..end]).lines().next().unwrap_or_default().to_owned();
                return Ok((first, body));
            }
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
