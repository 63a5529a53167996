//! The obstacle course over HTTP: every obstacle responds as its table entry says.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::time::Duration;

use common::{client, sites};
use practice::course::{ObstacleResponse, obstacles};
use tokio::time::timeout;

#[tokio::test]
async fn every_obstacle_responds_as_documented() {
    let sites = sites();
    for obstacle in obstacles() {
        let response = client().get(sites.url(obstacle.path)).send();
        let response = timeout(Duration::from_secs(5), response);
        match obstacle.response {
            ObstacleResponse::Page => {
                let page = response.await.expect(obstacle.path).expect(obstacle.path);
                assert_eq!(page.status(), 200, "{}", obstacle.path);
                assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8", "{}", obstacle.path);
            }
            ObstacleResponse::Status(code) => {
                assert_eq!(response.await.expect(obstacle.path).unwrap().status(), code, "{}", obstacle.path);
            }
            ObstacleResponse::Redirect => {
                let redirect = response.await.expect(obstacle.path).unwrap();
                assert_eq!(redirect.status(), 302, "{}", obstacle.path);
                assert!(redirect.headers()["location"].to_str().unwrap().starts_with("/course/"));
            }
            ObstacleResponse::Abort => {
                assert!(response.await.expect(obstacle.path).is_err(), "{} responded", obstacle.path);
            }
            ObstacleResponse::Never => {}
        }
    }
}

#[tokio::test]
async fn open_responses_end_when_the_server_stops() {
    let sites = sites();
    let pending = tokio::spawn(client().get(sites.url("/course/never")).send());
    let partial = client().get(sites.url("/course/never-body")).send().await.unwrap();
    let delayed = tokio::spawn(client().get(sites.url("/echo/delay?ms=500000")).send());
    let streaming = client().get(sites.url("/course/events")).send().await.unwrap();
    // Connections are accepted in order, so a response on a later connection shows that the earlier ones are accepted.
    assert_eq!(client().get(sites.url("/healthz")).send().await.unwrap().status(), 200);
    assert!(!pending.is_finished());
    timeout(Duration::from_secs(5), sites.stop()).await.expect("an open response blocks the shutdown");
    assert!(timeout(Duration::from_secs(5), pending).await.unwrap().unwrap().is_err());
    let rest = timeout(Duration::from_secs(5), partial.text()).await.unwrap();
    assert!(rest.is_err() || rest.unwrap().contains("begun"));
    let _ = timeout(Duration::from_secs(5), delayed).await.unwrap();
    let _ = timeout(Duration::from_secs(5), streaming.text()).await.unwrap();
}

#[tokio::test]
async fn hang_up_closes_and_reset_resets_the_connection() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let sites = sites();
    let request = async |path: &str| {
        let mut stream = tokio::net::TcpStream::connect(sites.addr()).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await.map(|_| response)
    };
    assert_eq!(request("/course/hang-up").await.unwrap(), b"");
    assert_eq!(request("/course/reset").await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn redirects_end_after_the_requested_number() {
    let sites = sites();
    for (n, hops) in [(1, 1), (2, 2), (5, 5)] {
        let mut path = format!("/course/redirect?n={n}");
        let mut followed = 0;
        loop {
            let response = client().get(sites.url(&path)).send().await.unwrap();
            if response.status() == 200 {
                break;
            }
            path = response.headers()["location"].to_str().unwrap().to_owned();
            followed += 1;
        }
        assert_eq!((followed, path.as_str()), (hops, "/course/arrived?by=redirect"));
    }
}

#[tokio::test]
async fn slow_page_is_delayed() {
    let sites = sites();
    let start = std::time::Instant::now();
    let page = client().get(sites.url("/course/slow?ms=200")).send().await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(page.text().await.unwrap().contains("<p id=\"result\">done</p>"));
}

#[tokio::test]
async fn basic_auth_requires_the_right_password() {
    let sites = sites();
    let address = sites.url("/course/basic-auth");
    let wrong = client().get(&address).basic_auth("visitor", Some("guess")).send().await.unwrap();
    assert_eq!(wrong.status(), 401);
    assert!(wrong.headers()["www-authenticate"].to_str().unwrap().starts_with("Basic"));
    let right = client().get(&address).basic_auth("visitor", Some("practice")).send().await.unwrap();
    assert_eq!(right.status(), 200);
}

#[tokio::test]
async fn opened_page_shows_the_request_escaped() {
    let sites = sites();
    let address = sites.url("/course/opened");
    let form = [("by", "post-form"), ("word", "<b>hello</b> wörld")];
    let page = client().post(address).form(&form).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("<strong id=\"method\">POST</strong>"));
    assert!(page.contains("<dd id=\"field-word\">&lt;b&gt;hello&lt;/b&gt; wörld</dd>"));
}

#[tokio::test]
async fn cookie_is_returned_to_its_visitor_only() {
    let sites = sites();
    let visitor = common::builder().cookie_store(true).no_proxy().build().unwrap();
    let set = visitor.get(sites.url("/course/storage?set=abc")).send().await.unwrap();
    assert!(set.headers()["set-cookie"].to_str().unwrap().contains("HttpOnly"));
    assert!(set.text().await.unwrap().contains("id=\"seen-http\">none<"));
    let again = visitor.get(sites.url("/course/storage")).send().await.unwrap().text().await.unwrap();
    assert!(again.contains("id=\"seen-http\">abc<"));
    let other = client().get(sites.url("/course/storage")).send().await.unwrap().text().await.unwrap();
    assert!(other.contains("id=\"seen-http\">none<"));
}

#[tokio::test]
async fn large_pages_have_the_documented_size() {
    let sites = sites();
    let get = async |path: &str| client().get(sites.url(path)).send().await.unwrap().text().await.unwrap();
    assert_eq!(get("/course/links").await.matches("<a id=\"link-").count(), 10_000);
    let titled = get("/course/big-title").await;
    let title = titled.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
    assert!(title.len() >= 1 << 20);
    let text = get("/course/text").await;
    let pre = text.split("<pre id=\"text\">\n").nth(1).unwrap().split("</pre>").next().unwrap();
    assert_eq!(pre.lines().count(), 300);
    assert_eq!(pre.lines().filter(|line| line.is_empty()).count(), 60);
}

#[tokio::test]
async fn long_list_has_500_items() {
    let sites = sites();
    let (mut seen, mut more) = (0, true);
    while more {
        let address = sites.url(&format!("/course/api/items?from={seen}"));
        let batch: serde_json::Value = client().get(address).send().await.unwrap().json().await.unwrap();
        let items = batch["items"].as_array().unwrap();
        assert_eq!(items[0], format!("Item {}", seen + 1));
        seen += items.len();
        more = batch["more"].as_bool().unwrap();
    }
    assert_eq!(seen, 500);
}

#[tokio::test]
async fn event_stream_counts_up() {
    let sites = sites();
    let mut events = client().get(sites.url("/course/events")).send().await.unwrap();
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    let mut seen = String::new();
    while !seen.contains("data: 3\n\n") {
        let chunk = timeout(Duration::from_secs(5), events.chunk()).await.expect("the stream stalled");
        seen.push_str(&String::from_utf8_lossy(&chunk.unwrap().unwrap()));
    }
    assert!(seen.starts_with("data: 1\n\ndata: 2\n\n"), "{seen:?}");
}

#[tokio::test]
async fn websockets_tick_and_echo() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    const TEXT: u8 = 0x81;
    let sites = sites();
    let open = async |name: &str| {
        let mut stream = tokio::net::TcpStream::connect(sites.addr()).await.unwrap();
        let request = format!(
            "GET /course/ws/{name} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        stream
    };
    let mut ticker = open("ticker").await;
    let mut frames = [0; 6];
    ticker.read_exact(&mut frames).await.unwrap();
    assert_eq!(frames, [TEXT, 1, b'1', TEXT, 1, b'2']);
    let mut echo = open("echo").await;
    // Client frames must be masked; a mask of zeros keeps the payload readable.
    echo.write_all(&[TEXT, 0x80 | 2, 0, 0, 0, 0, b'h', b'i']).await.unwrap();
    let mut frame = [0; 4];
    echo.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame, [TEXT, 2, b'h', b'i']);
    timeout(Duration::from_secs(5), sites.stop()).await.expect("an open socket blocks the shutdown");
}
