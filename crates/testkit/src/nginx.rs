//! A real nginx on its own port, with a configuration from the test; it is killed and removed on drop.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Output, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
};

/// Debian's path, which is not in the `PATH` of ordinary users.
const DEBIAN_PATH: &str = "/usr/sbin/nginx";

pub struct Nginx {
    port: u16,
    _child: Child,
    _folder: TempDir,
}

/// Writes a whole configuration around a `conf.d` file: one process in the foreground, all files in its own folder.
fn write_config(folder: &TempDir, site: &str) -> PathBuf {
    let root = folder.path().display();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {root}/{kind};\n"))
        .concat();
    let text = format!(
        "daemon off;\nmaster_process off;\npid {root}/pid;\nerror_log {root}/error.log;\n\
         events {{ worker_connections 512; }}\nhttp {{\naccess_log off;\n{paths}{site}\n}}\n"
    );
    let path = folder.path().join("nginx.conf");
    fs::write(&path, text).expect("a file can be written");
    path
}

fn program() -> String {
    if fs::exists(DEBIAN_PATH).unwrap_or(false) { DEBIAN_PATH.to_owned() } else { "nginx".to_owned() }
}

impl Nginx {
    /// Checks a `conf.d` file with `nginx -t`.
    pub async fn check(site: &str) -> Output {
        let folder = TempDir::new().expect("a folder");
        let mut command = Command::new(program());
        command.arg("-t").arg("-c").arg(write_config(&folder, site));
        command
            .output()
            .await
            .unwrap_or_else(|error| panic!("cannot run nginx ({error}); run scripts/setup --tests"))
    }

    /// Starts nginx on a free port, with the configuration that `site` returns for it, and waits until it listens.
    pub async fn start(site: impl AsyncFn(u16) -> String) -> Self {
        // Another process may take the port before nginx binds it; then try another port.
        for _ in 0..5 {
            let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            let port = probe.local_addr().expect("an address").port();
            drop(probe);
            let folder = TempDir::new().expect("a folder");
            let path = write_config(&folder, &site(port).await);
            let mut command = Command::new(program());
            command.arg("-c").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = command.kill_on_drop(true).spawn();
            let mut child =
                child.unwrap_or_else(|error| panic!("cannot run nginx ({error}); run scripts/setup --tests"));
            if is_listening(&mut child, port).await {
                return Self { port, _child: child, _folder: folder };
            }
            let log = fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();
            assert!(log.contains("Address already in use"), "nginx does not start:\n{log}");
        }
        panic!("nginx does not start on any port");
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

async fn is_listening(child: &mut Child, port: u16) -> bool {
    for _ in 0..1200 {
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return false;
        }
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok() {
            // Another process may listen there while ours is about to fail.
            tokio::time::sleep(Duration::from_millis(50)).await;
            return child.try_wait().is_ok_and(|ended| ended.is_none());
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    false
}
