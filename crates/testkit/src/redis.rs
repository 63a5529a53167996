//! A real Redis server on its own port, without persistence, that can be stopped and started again; optionally with a
//! password and TLS, or on a simulated host.

use std::{
    fmt::Write as _,
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
    /// The command prefix that runs `redis-server` on another host.
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

/// The ACL user that a secured server has besides the default one.
pub const REDIS_USER: &str = "farm";

fn free_port(ip: IpAddr) -> u16 {
    let probe = TcpListener::bind((ip, 0)).expect("a free port");
    probe.local_addr().expect("an address").port()
}

impl Redis {
    pub async fn start() -> Self {
        Self::start_local(None).await
    }

    /// Starts it with this password for the default user and [`REDIS_USER`], and with TLS on a second port.
    pub async fn secured(password: &str) -> Self {
        Self::start_local(Some(password)).await
    }

    async fn start_local(password: Option<&str>) -> Self {
        let ip = Ipv4Addr::LOCALHOST.into();
        // Another process may take the port before Redis binds it; then try another port.
        for _ in 0..5 {
            let folder = TempDir::new().expect("a folder");
            let secrets =
                password.map(|password| Secrets { password: password.to_owned(), tls_port: free_port(ip) });
            if secrets.is_some() {
                write_certificates(folder.path());
            }
            let mut redis =
                Self { ip, port: free_port(ip), launcher: Vec::new(), secrets, child: None, folder };
            if redis.launch().await {
                return redis;
            }
        }
        panic!("redis-server does not start on any port");
    }

    /// Starts it behind a command prefix that selects the host, at this address.
    pub async fn start_at(launcher: &[String], ip: IpAddr, port: u16) -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut redis = Self { ip, port, launcher: launcher.to_vec(), secrets: None, child: None, folder };
        assert!(redis.launch().await, "redis-server does not start at {ip}:{port}");
        redis
    }

    fn command(&self) -> Command {
        let mut arguments = self.launcher.clone();
        let fixed = ["redis-server", "--save", "", "--appendonly", "no", "--protected-mode", "no", "--bind"];
        arguments.extend(fixed.map(str::to_owned));
        arguments.extend([self.ip.to_string(), "--port".into(), self.port.to_string()]);
        if let Some(Secrets { password, tls_port }) = &self.secrets {
            let file = |name: &str| self.folder.path().join(name).display().to_string();
            arguments.extend(["--requirepass".into(), password.clone(), "--user".into(), REDIS_USER.into()]);
            arguments.extend(["on".into(), format!(">{password}"), "~*".into(), "&*".into(), "+@all".into()]);
            arguments.extend([
                "--tls-port".into(),
                tls_port.to_string(),
                "--tls-auth-clients".into(),
                "no".into(),
            ]);
            arguments.extend([
                "--tls-cert-file".into(),
                file("redis.crt"),
                "--tls-key-file".into(),
                file("redis.key"),
            ]);
        }
        let mut command = Command::new(&arguments[0]);
        command.args(&arguments[1..]);
        command
    }

    async fn launch(&mut self) -> bool {
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
        for _ in 0..1200 {
            if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return false;
            }
            if TcpStream::connect((self.ip, self.port)).await.is_ok()
                && self.send(0, &["PING"]).await == "+PONG"
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

    /// Returns the URL with these credentials, as in `user:password`.
    pub fn url_as(&self, credentials: &str) -> String {
        format!("redis://{credentials}@{}:{}", self.ip, self.port)
    }

    /// Returns the TLS URL with these credentials.
    pub fn tls_url_as(&self, credentials: &str) -> String {
        let port = self.secrets.as_ref().expect("a secured server").tls_port;
        format!("rediss://{credentials}@localhost:{port}")
    }

    /// Returns the path of the CA certificate that signed the server's.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// Kills the server: what it held in memory is lost.
    pub async fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().await.expect("it can be killed");
        }
    }

    /// Starts it again on the same port, without data.
    pub async fn restart(&mut self) {
        self.kill().await;
        assert!(self.launch().await, "redis-server does not start again on port {}", self.port);
    }

    /// Sends one command to a database and returns the raw response.
    async fn send(&self, database: u8, command: &[&str]) -> String {
        let Ok(mut stream) = TcpStream::connect((self.ip, self.port)).await else {
            return String::new();
        };
        let database = database.to_string();
        let mut setup: Vec<Vec<&str>> = Vec::new();
        setup.extend(self.secrets.as_ref().map(|secrets| vec!["AUTH", secrets.password.as_str()]));
        setup.push(vec!["SELECT", &database]);
        let mut request = String::new();
        for command in setup.iter().map(Vec::as_slice).chain([command]) {
            let _ = write!(request, "*{}\r\n", command.len());
            for argument in command {
                let _ = write!(request, "${}\r\n{argument}\r\n", argument.len());
            }
        }
        request += "*1\r\n$4\r\nQUIT\r\n";
        if stream.write_all(request.as_bytes()).await.is_err() {
            return String::new();
        }
        let mut response = String::new();
        let _ = stream.read_to_string(&mut response).await;
        // The first lines answer the setup commands, the last one answers QUIT.
        let mut response = response.as_str();
        for _ in &setup {
            response = response.strip_prefix("+OK\r\n").unwrap_or_default();
        }
        response.strip_suffix("+OK\r\n").unwrap_or(response).trim_end().to_owned()
    }

    /// Returns the strings in the response to a command, sorted.
    pub async fn query(&self, database: u8, command: &[&str]) -> Vec<String> {
        let response = self.send(database, command).await;
        let is_text = |line: &&str| !line.starts_with(['*', '$', '+', ':', '-']);
        let mut texts: Vec<String> = response.split("\r\n").filter(is_text).map(str::to_owned).collect();
        texts.retain(|text| !text.is_empty());
        texts.sort();
        texts
    }

    /// Returns the number in the response to a command.
    pub async fn number(&self, database: u8, command: &[&str]) -> i64 {
        let response = self.send(database, command).await;
        response
            .trim_start_matches(':')
            .parse()
            .unwrap_or_else(|_| panic!("{command:?} returned {response:?}"))
    }

    /// Returns name and URL of every node in the registry.
    pub async fn registered_nodes(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for name in self.query(1, &["KEYS", "omnibox:nodes:*"]).await {
            let url = self.query(1, &["GET", &name]).await;
            all.extend(
                url.into_iter().map(|url| (name.trim_start_matches("omnibox:nodes:").to_owned(), url)),
            );
        }
        all
    }

    /// Waits until a set has exactly these members.
    pub async fn wait_for_members(&self, database: u8, set: &str, mut wanted: Vec<String>) {
        wanted.sort();
        let what = format!("{set} in database {database} is {wanted:?}");
        eventually(&what, Duration::from_secs(20), async || {
            self.query(database, &["SMEMBERS", set]).await == wanted
        })
        .await;
    }
}

/// Writes a CA certificate, and a certificate for localhost that it signed.
fn write_certificates(folder: &std::path::Path) {
    let write = || -> Result<(), rcgen::Error> {
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
            std::fs::write(folder.join(name), text).expect("a writable folder");
        }
        Ok(())
    };
    write().expect("certificates can be created");
}
