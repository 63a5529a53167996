//! The model server of a loop: started under a supervisor, or somebody else's that the loop attaches to. It is ready when its
//! list of models has the model that the loop wants.

use std::path::Path;
use std::time::{Duration, Instant};

use client::chat::{ListedModel, ModelClient, ModelError, ModelOptions};

use crate::command::Program;
use crate::config::{ServeConfig, seconds};
use crate::launcher::Launcher;
use crate::supervisor::{ProgramError, Supervised};

const POLL_INTERVAL: Duration = Duration::from_millis(250);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot connect to {url}: {reason}")]
    Client { url: String, reason: String },
    #[error(
        "something already answers at {url} that this loop did not start. Stop it, choose another port in serve.url, or set \
         serve.command to null to attach to it"
    )]
    PortInUse { url: String },
    #[error("the model server ended before it served {model}: {source}")]
    Ended { model: String, source: ProgramError },
    #[error("the model server at {url} did not serve {model} within {} minutes: {reason}", timeout.as_secs_f64() / 60.0)]
    NotReady { url: String, model: String, timeout: Duration, reason: String },
    #[error(
        "the server at {url} lists {listed}; the loop needs a model named {name}. Start the server with that name, or set serve.served_model to the one it has"
    )]
    NotListed { url: String, name: String, listed: String },
    #[error("the server at {url} serves {name} from {root}, not from {model}")]
    OtherWeights { url: String, name: String, root: String, model: String },
    #[error(transparent)]
    Program(#[from] ProgramError),
}

impl ServeError {
    /// Whether another model would have the same problem.
    pub(crate) fn is_independent_of_model(&self) -> bool {
        match self {
            Self::Client { .. } | Self::PortInUse { .. } => true,
            Self::Program(error) | Self::Ended { source: error, .. } => {
                matches!(error, ProgramError::NotStarted { .. } | ProgramError::Stopped { .. })
            }
            Self::NotReady { .. } | Self::NotListed { .. } | Self::OtherWeights { .. } => false,
        }
    }
}

/// A server that this loop started.
#[derive(Debug)]
struct OwnServer {
    process: Supervised,
    model: String,
}

/// The model server of this rank.
#[derive(Debug)]
pub(crate) struct ModelServer {
    client: ModelClient,
    url: String,
    ready_timeout: Duration,
    grace: Duration,
    own: Option<OwnServer>,
}

/// What to serve, and with which programs.
pub(crate) struct Wanted<'a> {
    /// The model itself: a path or a name.
    pub(crate) model: &'a str,
    /// What the server should call it.
    pub(crate) served: &'a str,
    pub(crate) program: Option<Program>,
    pub(crate) reload: Option<Program>,
    pub(crate) log: &'a Path,
}

impl ModelServer {
    pub(crate) fn new(config: &ServeConfig, key: Option<&str>) -> Result<Self, ServeError> {
        let url = config.url.clone();
        let client = ModelClient::vllm(&url, ModelOptions::default()).and_then(|client| match key {
            Some(key) => client.with_api_key(key),
            None => Ok(client),
        });
        let failed = |error: ModelError| ServeError::Client { url: url.clone(), reason: error.to_string() };
        let client = client.map_err(failed)?;
        let ready_timeout = seconds(config.ready_minutes * 60.0);
        Ok(Self { client, url, ready_timeout, grace: seconds(config.stop_seconds), own: None })
    }

    /// Makes the server serve a model, and returns when it does.
    pub(crate) async fn serve(&mut self, wanted: &Wanted<'_>, launcher: &Launcher) -> Result<(), ServeError> {
        let served = match &wanted.program {
            Some(program) => self.start(program, wanted, launcher).await,
            None => self.attach(wanted, launcher).await,
        };
        if served.is_err() {
            self.stop().await;
        }
        served
    }

    async fn start(
        &mut self,
        program: &Program,
        wanted: &Wanted<'_>,
        launcher: &Launcher,
    ) -> Result<(), ServeError> {
        if self.own.as_ref().is_some_and(|own| own.model == wanted.model) {
            return self.wait_until_served(wanted, launcher).await;
        }
        self.stop().await;
        if is_listening(&self.url).await {
            return Err(ServeError::PortInUse { url: self.url.clone() });
        }
        let process = launcher.start(program, wanted.log)?;
        self.own = Some(OwnServer { process, model: wanted.model.to_owned() });
        self.wait_until_served(wanted, launcher).await
    }

    async fn attach(&mut self, wanted: &Wanted<'_>, launcher: &Launcher) -> Result<(), ServeError> {
        if let Some(reload) = &wanted.reload
            && self.check(wanted).await.is_err()
        {
            let limits = crate::launcher::Limits { timeout: self.ready_timeout, grace: self.grace };
            launcher.run(reload, wanted.log, limits).await?;
        }
        self.wait_until_served(wanted, launcher).await
    }

    /// Waits until the server lists the model. A server that ends, or that serves another model, is not waited for.
    async fn wait_until_served(
        &mut self,
        wanted: &Wanted<'_>,
        launcher: &Launcher,
    ) -> Result<(), ServeError> {
        let end = Instant::now() + self.ready_timeout;
        loop {
            let reason = match self.check(wanted).await {
                Ok(()) => return Ok(()),
                // An attached server may still be loading the model.
                Err(error @ (ServeError::NotListed { .. } | ServeError::OtherWeights { .. }))
                    if self.own.is_some() =>
                {
                    return Err(error);
                }
                Err(error) => error.to_string(),
            };
            if Instant::now() >= end {
                let (url, model, timeout) = (self.url.clone(), wanted.served.to_owned(), self.ready_timeout);
                return Err(ServeError::NotReady { url, model, timeout, reason });
            }
            let stopped =
                || ServeError::Program(ProgramError::Stopped { program: "the model server".into() });
            tokio::select! {
                source = self.ended() => {
                    return Err(ServeError::Ended { model: wanted.served.to_owned(), source });
                }
                () = launcher.stop.soft.cancelled() => return Err(stopped()),
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// Checks that the server answers and lists the model. If the server says where the weights come from, that must be the
    /// wanted folder.
    async fn check(&self, wanted: &Wanted<'_>) -> Result<(), ServeError> {
        let url = self.url.clone();
        let listed = self.client.listed_models(RESPONSE_TIMEOUT).await;
        let failed = |error: ModelError| ServeError::Client { url: url.clone(), reason: error.to_string() };
        let listed = listed.map_err(failed)?;
        let name = wanted.served.to_owned();
        let Some(found) = listed.iter().find(|model| model.id == wanted.served) else {
            let names: Vec<&str> = listed.iter().map(|model| model.id.as_str()).collect();
            let listed = if names.is_empty() { "no model".to_owned() } else { names.join(", ") };
            return Err(ServeError::NotListed { url, name, listed });
        };
        match other_weights(found, wanted.model, self.own.is_some()) {
            None => Ok(()),
            Some(root) => Err(ServeError::OtherWeights {
                url,
                name,
                root: root.to_owned(),
                model: wanted.model.to_owned(),
            }),
        }
    }

    /// Returns when the server that the loop started has ended by itself; never for a server of others.
    pub(crate) async fn ended(&mut self) -> ProgramError {
        let Some(own) = &mut self.own else { return std::future::pending().await };
        let error = match own.process.wait().await {
            Ok(_) => {
                ProgramError::Exited { program: "the model server".into(), code: 0, tail: String::new() }
            }
            Err(error) => error,
        };
        self.own = None;
        error
    }

    /// Stops the server if this loop started it.
    pub(crate) async fn stop(&mut self) {
        if let Some(mut own) = self.own.take() {
            own.process.stop(self.grace).await;
        }
    }
}

/// Returns the folder of the weights if the server says that they come from another one. A server on this machine cannot
/// have read a folder that does not exist any more; one of others may be on another machine.
fn other_weights<'a>(listed: &'a ListedModel, model: &str, is_own: bool) -> Option<&'a str> {
    let root = listed.root.as_deref()?;
    let folder = |path: &str| std::fs::canonicalize(path).ok();
    let is_other = match (folder(root), folder(model)) {
        (Some(root), Some(model)) => root != model,
        (None, Some(_)) => is_own && root.starts_with('/'),
        (_, None) => false,
    };
    is_other.then_some(root)
}

/// Whether something accepts connections at the host and port of a URL.
async fn is_listening(url: &str) -> bool {
    let address = host_and_port(url);
    let connected = tokio::time::timeout(RESPONSE_TIMEOUT, tokio::net::TcpStream::connect(address)).await;
    connected.is_ok_and(|connected| connected.is_ok())
}

/// Returns host and port of a URL; without a port, that of its scheme.
pub(crate) fn host_and_port(url: &str) -> (String, u16) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split('/').next().unwrap_or_default();
    let default = if scheme == "https" { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(default)),
        _ => (authority, default),
    };
    (host.trim_matches(['[', ']']).to_owned(), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_are_read_from_urls() {
        for (url, host, port) in [
            ("http://127.0.0.1:8999", "127.0.0.1", 8999),
            ("http://[::1]:80/v1", "::1", 80),
            ("https://model.example/v1", "model.example", 443),
            ("http://[::1]", "::1", 80),
        ] {
            assert_eq!(host_and_port(url), (host.to_owned(), port), "{url}");
        }
    }

    #[test]
    fn other_weights_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name).display().to_string());
        for path in &paths {
            std::fs::create_dir(path).unwrap();
        }
        let listed = |root: Option<&str>| ListedModel { id: "policy".into(), root: root.map(str::to_owned) };
        let other = |root: Option<&str>, model: &str, is_own: bool| {
            other_weights(&listed(root), model, is_own).map(str::to_owned)
        };
        assert_eq!(other(Some(&paths[0]), &paths[1], false), Some(paths[0].clone()));
        assert_eq!(other(Some(&paths[0]), &paths[0], true), None);
        assert_eq!(other(None, &paths[0], true), None);
        assert_eq!(other(Some("org/name"), &paths[0], true), None, "a name says nothing about folders");
        let gone = folder.path().join("gone").display().to_string();
        assert_eq!(other(Some(&gone), &paths[0], true), Some(gone.clone()), "a removed checkpoint");
        assert_eq!(other(Some(&gone), &paths[0], false), None, "perhaps on another machine");
    }
}
