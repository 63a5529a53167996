//! Attacks on the viewer of saved trajectories, and with it on the monitor, which uses the same server.

use std::{process::Stdio, sync::Arc, time::Duration};

use hyper::Method;
use testkit::{Http, eventually};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

use crate::{TIMEOUT, WEBGYM, attacks, environment::Environment};

attacks![
    viewer_blocks_path_traversal,
    viewer_requires_token,
    viewer_refuses_foreign_host_names,
    viewer_closes_idle_connections
];

struct Viewer {
    _child: Child,
    _folder: tempfile::TempDir,
    address: String,
}

impl Viewer {
    async fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("secret.txt"), "the-secret-word").expect("a file");
        let save_path = folder.path().join("run");
        std::fs::create_dir(&save_path).expect("a folder");
        let mut command = Command::new(WEBGYM);
        command.arg("view").arg(&save_path).args(["--port", "0"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the viewer starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        loop {
            let line = lines.next_line().await.expect("readable output").expect("a line with its URL");
            if let Some(rest) = line.split("open http://").nth(1) {
                let address = rest.split('/').next().expect("an address").to_owned();
                let address = match address.rsplit_once(':') {
                    Some((_, port)) => format!("127.0.0.1:{port}"),
                    None => address,
                };
                return Self { _child: child, _folder: folder, address };
            }
        }
    }

    /// Sends a request target without normalising it and returns the raw response.
    async fn get(&self, target: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.expect("a connection");
        let request = format!("GET {target} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("the request is sent");
        let mut response = Vec::new();
        tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut response))
            .await
            .expect("a response in time")
            .expect("a readable response");
        String::from_utf8_lossy(&response).into_owned()
    }
}

async fn viewer_blocks_path_traversal(_: Arc<Environment>) {
    let viewer = Viewer::start(&[]).await;
    let up =
        ["..", "%2e%2e", "..%2f", "%2e%2e%2f", "..%5c", "%252e%252e%252f", "....//", "..%00", "%c0%ae%c0%ae"];
    let trajectories = "/api/iterations/test/0/trajectories/";
    let steps = format!("{trajectories}0/steps/");
    // The routes exist: an ordinary request reaches the handler, which finds no such iteration.
    for target in [format!("{trajectories}0"), format!("{steps}0/screenshot")] {
        let response = viewer.get(&target, "host: localhost\r\n").await;
        assert!(response.contains("\"no_iteration\""), "{target}: {response}");
    }
    for prefix in ["/", "/assets/", "/api/", "/api/iterations/", trajectories, &steps] {
        for dots in up {
            for tail in ["secret.txt", "../secret.txt", "etc/passwd", "../../../../../../etc/passwd"] {
                let response = viewer.get(&format!("{prefix}{dots}/{tail}"), "host: localhost\r\n").await;
                assert!(
                    !response.contains("the-secret-word") && !response.contains("root:"),
                    "{prefix}{dots}/{tail}: {response}"
                );
                assert!(!response.starts_with("HTTP/1.1 5"), "{prefix}{dots}/{tail}: {response}");
                assert!(!response.starts_with("HTTP/1.1 200"), "{prefix}{dots}/{tail}: {response}");
            }
        }
    }
    for target in ["file:///etc/passwd", "http://evil.test/etc/passwd", "//etc/passwd", "/assets//etc/passwd"]
    {
        let response = viewer.get(target, "host: localhost\r\n").await;
        assert!(!response.contains("root:") && !response.starts_with("HTTP/1.1 5"), "{target}: {response}");
    }
    let http = Http::new(&format!("http://{}", viewer.address), None);
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        assert_eq!(http.send(method, "/", &[], "x", &[]).await.status, 405);
    }
}

async fn viewer_requires_token(_: Arc<Environment>) {
    let viewer = Viewer::start(&["--host", "0.0.0.0", "--token", "right-token"]).await;
    for target in [
        "/",
        "/?token=",
        "/?token=right-toke",
        "/?token=right-token2",
        "/?token=RIGHT-TOKEN",
        "/api/iterations?token=x",
        "/assets/theme.js",
        "/?token=%00",
        "/?Token=right-token",
    ] {
        let response = viewer.get(target, "host: localhost\r\n").await;
        assert!(response.starts_with("HTTP/1.1 401"), "{target}: {response}");
    }
    for header in [
        "authorization: Bearer x",
        "authorization: Basic cmlnaHQtdG9rZW4=",
        "cookie: webgym=right-token",
        "x-api-key: right-token",
        "x-forwarded-for: 127.0.0.1",
    ] {
        let response = viewer.get("/", &format!("host: localhost\r\n{header}\r\n")).await;
        assert!(response.starts_with("HTTP/1.1 401"), "{header}: {response}");
    }
    let response = viewer.get("/", "host: localhost\r\nauthorization: Bearer right-token\r\n").await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

async fn viewer_refuses_foreign_host_names(_: Arc<Environment>) {
    let viewer = Viewer::start(&[]).await;
    for host in ["evil.test", "evil.test:5001", "localhost.evil.test", "127.0.0.1.evil.test"] {
        let response = viewer.get("/", &format!("host: {host}\r\n")).await;
        assert!(response.starts_with("HTTP/1.1 403"), "{host}: {response}");
    }
    let response =
        viewer.get("/", &format!("host: {}\r\norigin: http://evil.test\r\n", viewer.address)).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let response = response.to_lowercase();
    assert!(!response.contains("access-control-allow"), "pages of other origins may not read it: {response}");
    assert!(
        response.contains("content-security-policy: default-src 'none'")
            && response.contains("x-frame-options: deny"),
        "{response}"
    );
}

async fn viewer_closes_idle_connections(_: Arc<Environment>) {
    let viewer = Viewer::start(&[]).await;
    let mut held = Vec::new();
    for number in 0..400 {
        let mut stream = TcpStream::connect(&viewer.address).await.expect("a connection");
        if number % 2 == 0 {
            stream.write_all(b"GET / HTTP/1.1\r\nx-").await.expect("the request is sent");
        }
        held.push(stream);
    }
    eventually("other clients are served", TIMEOUT, async || {
        viewer.get("/", "host: localhost\r\n").await.starts_with("HTTP/1.1 200")
    })
    .await;
    // A client that sends no request is disconnected within a minute.
    let mut rest = Vec::new();
    let mut first = held.remove(0);
    let closed = tokio::time::timeout(Duration::from_secs(100), first.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the connection is still open");
}
