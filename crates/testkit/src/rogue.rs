//! A model server that breaks every rule: answers without end, byte by byte, cut off, packed, pointing elsewhere. It
//! speaks bare TCP, so that nothing is put right on the way. Its list of models is always in order.

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

/// What becomes of a question.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// These bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// This, then that again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// This, then a blank at a time, for ever.
    Drip(Vec<u8>, Duration),
    /// These bytes, then a reset.
    Reset(Vec<u8>),
}

impl Wrong {
    /// An answer by the rules of HTTP, whatever its body may be.
    pub fn http(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut bytes = head(status, headers);
        bytes.truncate(bytes.len() - 2);
        bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
        bytes.extend(body);
        Self::Bytes(bytes)
    }

    /// An answer that is in order.
    pub fn say(text: &str) -> Self {
        let body = json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]});
        Self::http("200 OK", &["content-type: application/json"], body.to_string())
    }
}

/// A head up to and including the blank line.
pub fn head(status: &str, headers: &[&str]) -> Vec<u8> {
    let headers: String = headers.iter().flat_map(|header| [header, "\r\n"]).collect();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

type Script = dyn Fn(usize, &str) -> Wrong + Send + Sync;

/// Runs until dropped.
pub struct Rogue {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    serving: AbortHandle,
}

impl Rogue {
    /// The script is told how many questions came before, and this one's body.
    pub async fn start(script: impl Fn(usize, &str) -> Wrong + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(AtomicUsize::new(0));
        let (count, script): (_, Arc<Script>) = (Arc::clone(&asked), Arc::new(script));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (count, script) = (Arc::clone(&count), Arc::clone(&script));
                // Whoever asked may have gone: that is the point of it.
                tokio::spawn(async move { drop(serve(stream, &count, &*script).await) });
            }
        });
        Self { address, asked, serving: serving.abort_handle() }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many questions came.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Rogue {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut stream: TcpStream, asked: &AtomicUsize, script: &Script) -> std::io::Result<()> {
    let (start, body) = request(&mut stream).await?;
    let wrong = if start.starts_with("GET ") {
        Wrong::http("200 OK", &[], json!({"data": [{"id": "sim"}]}).to_string())
    } else {
        script(asked.fetch_add(1, Ordering::SeqCst), &body)
    };
    match wrong {
        Wrong::Bytes(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        }
        Wrong::Endless(start, again) => {
            stream.write_all(&start).await?;
            loop {
                stream.write_all(&again).await?;
            }
        }
        Wrong::Drip(start, pause) => {
            stream.write_all(&start).await?;
            loop {
                stream.write_all(b" ").await?;
                tokio::time::sleep(pause).await;
            }
        }
        Wrong::Reset(bytes) => {
            stream.write_all(&bytes).await?;
            stream.set_zero_linger()
        }
    }
}

/// The request's first line and its body.
async fn request(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
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
