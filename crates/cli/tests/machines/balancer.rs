//! A real nginx on its own host that balances requests over the masters.

use std::{process::Stdio, time::Duration};

use tempfile::TempDir;
use testkit::{eventually, hosts::Host};
use tokio::{
    net::TcpStream,
    process::{Child, Command},
};

use crate::{LIMIT, cluster::Member};

pub(crate) const PORT: u16 = 7000;

pub(crate) struct Balancer {
    pub(crate) host: Host,
    child: Child,
    _folder: TempDir,
}

impl Balancer {
    pub(crate) async fn start(masters: &[Member]) -> Self {
        let host = Host::new("balancer");
        let folder = TempDir::new().expect("a folder");
        let server = |master: &Member| format!("server {}:7000 max_fails=1 fail_timeout=1s;", master.host.ip);
        let servers = masters.iter().map(server).collect::<Vec<_>>().join(" ");
        let root = folder.path().display();
        let config = format!(
            "daemon off; worker_processes 1; user root; pid {root}/pid; error_log {root}/error.log;
             events {{ worker_connections 512; }}
             http {{
               access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy;
               fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
               upstream masters {{ {servers} }}
               server {{ listen {PORT}; location / {{
                 proxy_pass http://masters; proxy_http_version 1.1; proxy_set_header Connection '';
                 proxy_connect_timeout 2s; proxy_read_timeout 180s; proxy_next_upstream error timeout non_idempotent;
               }} }}
             }}"
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, config).expect("a writable folder");
        let launcher = host.launcher();
        let mut command = Command::new(&launcher[0]);
        command.args(&launcher[1..]).arg("nginx").arg("-c").arg(&file).arg("-p").arg(folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().expect("nginx starts; install it with scripts/setup --tests");
        let balancer = Self { host, child, _folder: folder };
        eventually("nginx listens", LIMIT, async || {
            TcpStream::connect((balancer.host.ip, PORT)).await.is_ok()
        })
        .await;
        balancer
    }

    pub(crate) async fn stop(mut self) {
        // nginx stops its worker on SIGTERM but not when it is killed.
        if let Some(pid) = self.child.id() {
            testkit::signal(pid, rustix::process::Signal::TERM);
        }
        let stopped = tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await;
        assert!(stopped.is_ok(), "nginx does not stop");
    }
}
