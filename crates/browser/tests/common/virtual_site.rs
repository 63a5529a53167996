//! A site that uses everything a deterministic session fixes: clock, timers, frames, animations, random numbers, workers,
//! requests after a timer, and an event stream that stays open.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const PAGE: &str = include_str!("virtual_site/page.html");
const STREAM: &str = include_str!("virtual_site/stream.html");
const FRAME: &str = include_str!("virtual_site/frame.html");
const WORKER: &str = include_str!("virtual_site/worker.js");
const SERVICE_WORKER: &str = "const made = `service ${Math.random()} ${Date.now()}`; \
    onmessage = (e) => e.source.postMessage(made); onactivate = (e) => e.waitUntil(clients.claim())";

/// Starts the site on a free loopback port. It lives as long as the test binary.
pub(crate) async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, address.port()));
        }
    });
    address
}

async fn serve(mut stream: TcpStream, port: u16) {
    let mut received = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            if !matches!(stream.read_buf(&mut received).await, Ok(read) if read > 0) {
                return;
            }
        };
        let head = String::from_utf8_lossy(&received[..end]).into_owned();
        received.drain(..end);
        let path = head.split(' ').nth(1).unwrap_or_default();
        let (kind, body) = match path.split('?').next().unwrap_or_default() {
            "/" => ("text/html", PAGE.replace("PORT", &port.to_string())),
            "/stream" => ("text/html", STREAM.to_owned()),
            "/frame" => ("text/html", FRAME.to_owned()),
            "/worker.js" => ("text/javascript", WORKER.to_owned()),
            "/service.js" => ("text/javascript", SERVICE_WORKER.to_owned()),
            "/data" => ("text/plain", format!("data of {path}")),
            "/events" => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n\r\ndata: first\n\n";
                let _ = stream.write_all(head.as_bytes()).await;
                // The stream stays open until the page leaves.
                let _ = stream.read_buf(&mut received).await;
                return;
            }
            "/never" => {
                let _ = stream.read_buf(&mut received).await;
                return;
            }
            _ => ("text/plain", String::new()),
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\ncache-control: no-store\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}
