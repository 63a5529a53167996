//! Attacks on the servers that only show: the viewer of saved trajectories, and with it the monitor, which is served the
//! same way.

use std::{process::Stdio, sync::Arc, time::Duration};

use hyper::Method;
use testkit::{Http, eventually};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

use crate::{SECONDS, WEBGYM, attacks, world::World};

attacks![
    climbs_out_of_the_viewers_folder,
    looks_without_the_token,
    reads_the_viewer_by_a_name_that_points_here,
    hangs_on_to_the_viewer
];

struct Viewer {
    _child: Child,
    _folder: tempfile::TempDir,
    address: String,
}

impl Viewer {
    async fn start(words: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("secret.txt"), "the-secret-word").expect("a file");
        let save_path = folder.path().join("run");
        std::fs::create_dir(&save_path).expect("a folder");
        let mut command = Command::new(WEBGYM);
        command.arg("view").arg(&save_path).args(["--port", "0"]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        loop {
            let line = lines.next_line().await.expect("it speaks").expect("it says where it is");
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

    /// A request line as it is, dots and all.
    async fn get(&self, target: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.expect("a connection");
        let request = format!("GET {target} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let mut said = Vec::new();
        tokio::time::timeout(SECONDS, stream.read_to_end(&mut said))
            .await
            .expect("an answer")
            .expect("it is read");
        String::from_utf8_lossy(&said).into_owned()
    }
}

async fn climbs_out_of_the_viewers_folder(_: Arc<World>) {
    let viewer = Viewer::start(&[]).await;
    let up =
        ["..", "%2e%2e", "..%2f", "%2e%2e%2f", "..%5c", "%252e%252e%252f", "....//", "..%00", "%c0%ae%c0%ae"];
    for prefix in ["/", "/assets/", "/api/", "/api/picture/", "/api/test/0/", "/api/trajectory/"] {
        for dots in up {
            for tail in ["secret.txt", "../secret.txt", "etc/passwd", "../../../../../../etc/passwd"] {
                let said = viewer.get(&format!("{prefix}{dots}/{tail}"), "host: localhost\r\n").await;
                assert!(
                    !said.contains("the-secret-word") && !said.contains("root:"),
                    "{prefix}{dots}/{tail}: {said}"
                );
                assert!(!said.starts_with("HTTP/1.1 5"), "{prefix}{dots}/{tail}: {said}");
                assert!(!said.starts_with("HTTP/1.1 200"), "{prefix}{dots}/{tail}: {said}");
            }
        }
    }
    for target in ["file:///etc/passwd", "http://evil.test/etc/passwd", "//etc/passwd", "/assets//etc/passwd"]
    {
        let said = viewer.get(target, "host: localhost\r\n").await;
        assert!(!said.contains("root:") && !said.starts_with("HTTP/1.1 5"), "{target}: {said}");
    }
    let http = Http::new(&format!("http://{}", viewer.address), None);
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        assert_eq!(http.send(method, "/", &[], "x", &[]).await.status, 405);
    }
}

async fn looks_without_the_token(_: Arc<World>) {
    let viewer = Viewer::start(&["--host", "0.0.0.0", "--token", "right-token"]).await;
    for target in [
        "/",
        "/?token=",
        "/?token=right-toke",
        "/?token=right-token2",
        "/?token=RIGHT-TOKEN",
        "/api/contents?token=x",
        "/assets/theme.js",
        "/?token=%00",
        "/?Token=right-token",
    ] {
        let said = viewer.get(target, "host: localhost\r\n").await;
        assert!(said.starts_with("HTTP/1.1 401"), "{target}: {said}");
    }
    for header in [
        "authorization: Bearer x",
        "authorization: Basic cmlnaHQtdG9rZW4=",
        "cookie: webgym=right-token",
        "x-api-key: right-token",
        "x-forwarded-for: 127.0.0.1",
    ] {
        let said = viewer.get("/", &format!("host: localhost\r\n{header}\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 401"), "{header}: {said}");
    }
    let said = viewer.get("/", "host: localhost\r\nauthorization: Bearer right-token\r\n").await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

async fn reads_the_viewer_by_a_name_that_points_here(_: Arc<World>) {
    let viewer = Viewer::start(&[]).await;
    for host in ["evil.test", "evil.test:5001", "localhost.evil.test", "127.0.0.1.evil.test"] {
        let said = viewer.get("/", &format!("host: {host}\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 403"), "{host}: {said}");
    }
    let said = viewer.get("/", &format!("host: {}\r\norigin: http://evil.test\r\n", viewer.address)).await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    let said = said.to_lowercase();
    assert!(!said.contains("access-control-allow"), "nobody else's page may read it: {said}");
    assert!(
        said.contains("content-security-policy: default-src 'none'")
            && said.contains("x-frame-options: deny"),
        "{said}"
    );
}

async fn hangs_on_to_the_viewer(_: Arc<World>) {
    let viewer = Viewer::start(&[]).await;
    let mut held = Vec::new();
    for number in 0..400 {
        let mut stream = TcpStream::connect(&viewer.address).await.expect("a connection");
        if number % 2 == 0 {
            stream.write_all(b"GET / HTTP/1.1\r\nx-").await.expect("it is sent");
        }
        held.push(stream);
    }
    eventually("others are served", SECONDS, async || {
        viewer.get("/", "host: localhost\r\n").await.starts_with("HTTP/1.1 200")
    })
    .await;
    // Who does not ask is left within a minute.
    let mut rest = Vec::new();
    let first = held.remove(0);
    let mut first = first;
    let closed = tokio::time::timeout(Duration::from_secs(100), first.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "still open");
}
