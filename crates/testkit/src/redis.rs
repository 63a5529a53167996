//! A real Redis server on a port of its own, with nothing on disk, that can be stopped and started again.

use std::{
    net::{Ipv4Addr, TcpListener},
    process::Stdio,
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
};

use crate::eventually::eventually;

pub struct Redis {
    port: u16,
    child: Option<Child>,
    folder: TempDir,
}

impl Redis {
    pub async fn start() -> Self {
        // Between finding the port and binding it somebody else might take it; then another is found.
        for _ in 0..5 {
            let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            let port = probe.local_addr().expect("an address").port();
            drop(probe);
            let folder = TempDir::new().expect("a folder");
            let mut redis = Self { port, child: None, folder };
            if redis.run().await {
                return redis;
            }
        }
        panic!("redis-server does not start on any port");
    }

    async fn run(&mut self) -> bool {
        let mut command = Command::new("redis-server");
        command.args([
            "--port",
            &self.port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let child = command.spawn();
        let mut child = child.unwrap_or_else(|error| {
            panic!("redis-server cannot be started ({error}); run scripts/setup --tests")
        });
        for _ in 0..400 {
            if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return false;
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_ok()
                && self.say(0, &["PING"]).await == "+PONG"
            {
                self.child = Some(child);
                return true;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        false
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server: what it held in memory is lost.
    pub async fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().await.expect("it can be killed");
        }
    }

    /// Starts it again on the same port, empty.
    pub async fn restart(&mut self) {
        self.kill().await;
        assert!(self.run().await, "redis-server does not start again on port {}", self.port);
    }

    /// Sends one command to a database and returns the raw answer.
    async fn say(&self, database: u8, words: &[&str]) -> String {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await else {
            return String::new();
        };
        let database = database.to_string();
        let mut request = String::new();
        for command in [&["SELECT", &database], words] {
            request += &format!("*{}\r\n", command.len());
            for word in command {
                request += &format!("${}\r\n{word}\r\n", word.len());
            }
        }
        request += "*1\r\n$4\r\nQUIT\r\n";
        if stream.write_all(request.as_bytes()).await.is_err() {
            return String::new();
        }
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        // The first line is for SELECT, the last for QUIT.
        let answer = answer.strip_prefix("+OK\r\n").unwrap_or_default();
        answer.strip_suffix("+OK\r\n").unwrap_or(answer).trim_end().to_owned()
    }

    /// The strings in the answer to a command, sorted.
    pub async fn ask(&self, database: u8, words: &[&str]) -> Vec<String> {
        let answer = self.say(database, words).await;
        let is_text = |line: &&str| !line.starts_with(['*', '$', '+', ':', '-']);
        let mut texts: Vec<String> = answer.split("\r\n").filter(is_text).map(str::to_owned).collect();
        texts.retain(|text| !text.is_empty());
        texts.sort();
        texts
    }

    /// A number in the answer to a command.
    pub async fn number(&self, database: u8, words: &[&str]) -> i64 {
        let answer = self.say(database, words).await;
        answer.trim_start_matches(':').parse().unwrap_or_else(|_| panic!("{words:?} gave {answer:?}"))
    }

    /// Waits until a set holds exactly these.
    pub async fn holds(&self, database: u8, set: &str, mut wanted: Vec<String>) {
        wanted.sort();
        let what = format!("{set} in database {database} is {wanted:?}");
        eventually(&what, Duration::from_secs(20), async || {
            self.ask(database, &["SMEMBERS", set]).await == wanted
        })
        .await;
    }
}
