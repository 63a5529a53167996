//! A real Redis server on a port of its own, with nothing on disk, that can be stopped and started again; on
//! request behind a password and TLS, or on a host of the test's own.

use std::{
    net::{IpAddr, Ipv4Addr, TcpListener},
    path::PathBuf,
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
    ip: IpAddr,
    port: u16,
    /// Words in front of `redis-server`: what puts it on another host.
    launcher: Vec<String>,
    secrets: Option<Secrets>,
    child: Option<Child>,
    folder: TempDir,
}

/// What a client needs besides the address.
struct Secrets {
    password: String,
    tls_port: u16,
}

/// The user beside the default one who may come in, where there are passwords.
pub const REDIS_USER: &str = "farm";

fn free_port(ip: IpAddr) -> u16 {
    let probe = TcpListener::bind((ip, 0)).expect("a free port");
    probe.local_addr().expect("an address").port()
}

impl Redis {
    pub async fn start() -> Self {
        Self::somewhere(None).await
    }

    /// With this password for the default user and for [`REDIS_USER`], and with TLS on a port of its own.
    pub async fn secured(password: &str) -> Self {
        Self::somewhere(Some(password)).await
    }

    async fn somewhere(password: Option<&str>) -> Self {
        let ip = Ipv4Addr::LOCALHOST.into();
        // Between finding the port and binding it somebody else might take it; then another is found.
        for _ in 0..5 {
            let folder = TempDir::new().expect("a folder");
            let secrets =
                password.map(|password| Secrets { password: password.to_owned(), tls_port: free_port(ip) });
            if secrets.is_some() {
                certify(folder.path());
            }
            let mut redis =
                Self { ip, port: free_port(ip), launcher: Vec::new(), secrets, child: None, folder };
            if redis.run().await {
                return redis;
            }
        }
        panic!("redis-server does not start on any port");
    }

    /// On a host that these words put a program on, at this address.
    pub async fn start_at(launcher: &[String], ip: IpAddr, port: u16) -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut redis = Self { ip, port, launcher: launcher.to_vec(), secrets: None, child: None, folder };
        assert!(redis.run().await, "redis-server does not start at {ip}:{port}");
        redis
    }

    fn command(&self) -> Command {
        let mut words = self.launcher.clone();
        let fixed = ["redis-server", "--save", "", "--appendonly", "no", "--protected-mode", "no", "--bind"];
        words.extend(fixed.map(str::to_owned));
        words.extend([self.ip.to_string(), "--port".into(), self.port.to_string()]);
        if let Some(Secrets { password, tls_port }) = &self.secrets {
            let file = |name: &str| self.folder.path().join(name).display().to_string();
            words.extend(["--requirepass".into(), password.clone(), "--user".into(), REDIS_USER.into()]);
            words.extend(["on".into(), format!(">{password}"), "~*".into(), "&*".into(), "+@all".into()]);
            words.extend([
                "--tls-port".into(),
                tls_port.to_string(),
                "--tls-auth-clients".into(),
                "no".into(),
            ]);
            words.extend([
                "--tls-cert-file".into(),
                file("redis.crt"),
                "--tls-key-file".into(),
                file("redis.key"),
            ]);
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    async fn run(&mut self) -> bool {
        let mut command = self.command();
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
            if TcpStream::connect((self.ip, self.port)).await.is_ok()
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
        format!("redis://{}:{}", self.ip, self.port)
    }

    /// The address with this before the host, as in `user:password`.
    pub fn url_as(&self, who: &str) -> String {
        format!("redis://{who}@{}:{}", self.ip, self.port)
    }

    /// The same over TLS.
    pub fn tls_url_as(&self, who: &str) -> String {
        let port = self.secrets.as_ref().expect("a secured server").tls_port;
        format!("rediss://{who}@localhost:{port}")
    }

    /// The authority that signed its certificate.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
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
        let Ok(mut stream) = TcpStream::connect((self.ip, self.port)).await else {
            return String::new();
        };
        let database = database.to_string();
        let mut before: Vec<Vec<&str>> = Vec::new();
        before.extend(self.secrets.as_ref().map(|secrets| vec!["AUTH", secrets.password.as_str()]));
        before.push(vec!["SELECT", &database]);
        let mut request = String::new();
        for command in before.iter().map(Vec::as_slice).chain([words]) {
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
        // The first lines are for what came before, the last for QUIT.
        let mut answer = answer.as_str();
        for _ in &before {
            answer = answer.strip_prefix("+OK\r\n").unwrap_or_default();
        }
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

    /// The addresses in the registry, by name.
    pub async fn registered(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for name in self.ask(1, &["KEYS", "omnibox:nodes:*"]).await {
            let url = self.ask(1, &["GET", &name]).await;
            all.extend(
                url.into_iter().map(|url| (name.trim_start_matches("omnibox:nodes:").to_owned(), url)),
            );
        }
        all
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

/// Writes an authority, and a certificate for localhost that it signed.
fn certify(folder: &std::path::Path) {
    let made = || -> Result<(), rcgen::Error> {
        let authority_key = rcgen::KeyPair::generate()?;
        let mut authority = rcgen::CertificateParams::new(Vec::new())?;
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key)?;
        let issuer = rcgen::Issuer::new(authority, authority_key);
        let key = rcgen::KeyPair::generate()?;
        let server = rcgen::CertificateParams::new(vec!["localhost".to_owned()])?.signed_by(&key, &issuer)?;
        let files =
            [("ca.crt", certificate.pem()), ("redis.crt", server.pem()), ("redis.key", key.serialize_pem())];
        for (name, text) in files {
            std::fs::write(folder.join(name), text).expect("the folder is ours");
        }
        Ok(())
    };
    made().expect("certificates");
}
