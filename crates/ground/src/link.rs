//! One database of a Redis server. Connects when needed, forgets a connection that failed, and never waits long.

use std::{path::PathBuf, time::Duration};

use redis::{AsyncConnectionConfig, FromRedisValue, RedisError, TlsCertificates, aio::MultiplexedConnection};
use tokio::{sync::Mutex, time::error::Elapsed};
use url::Url;

use crate::{LinkError, Place};

/// Where Redis is and whom to believe that it is it.
#[derive(Clone, Debug)]
pub struct Server {
    /// `redis://` or `rediss://`, with user and password where it wants them.
    pub address: String,
    /// The authority (PEM) that its certificate must be signed by; left out, those this machine trusts.
    pub ca: Option<PathBuf>,
}

impl From<&str> for Server {
    fn from(address: &str) -> Self {
        Self::new(address)
    }
}

impl From<&Self> for Server {
    fn from(server: &Self) -> Self {
        server.clone()
    }
}

impl Server {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), ca: None }
    }

    /// The address without what is nobody's business.
    fn url(&self) -> Result<Url, LinkError> {
        let bad = || LinkError::Address(Place::odd(&self.address));
        let url = Url::parse(&self.address).map_err(|_| bad())?;
        if !matches!(url.scheme(), "redis" | "rediss") || url.host_str().is_none_or(str::is_empty) {
            return Err(bad());
        }
        Ok(url)
    }

    fn client(&self, url: &Url) -> Result<redis::Client, LinkError> {
        if url.scheme() == "rediss" {
            // The first one counts for the whole process; all of ours are the same.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let read = |error| LinkError::read(&Place::of(url), error);
        let Some(path) = self.ca.as_ref().filter(|_| url.scheme() == "rediss") else {
            return redis::Client::open(url.as_str()).map_err(read);
        };
        let unusable = |why: String| LinkError::CaFile { path: path.clone(), why };
        let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
        if !pem.windows(CERTIFICATE.len()).any(|part| part == CERTIFICATE) {
            return Err(unusable("it holds no certificate in PEM form".into()));
        }
        let trusted = TlsCertificates { client_tls: None, root_cert: Some(pem) };
        redis::Client::build_with_tls(url.as_str(), trusted).map_err(|error| unusable(error.to_string()))
    }
}

const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";
const LIMIT: Duration = Duration::from_secs(3);

pub struct Link {
    client: redis::Client,
    place: Place,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Link {
    /// A link to this database, whatever the address says.
    pub fn new(server: impl Into<Server>, database: u8) -> Result<Self, LinkError> {
        let server: Server = server.into();
        let mut url = server.url()?;
        url.set_path(&database.to_string());
        Self::open(&server, &url)
    }

    /// A link to the database that the address names; 0 when it names none.
    pub fn to(server: impl Into<Server>) -> Result<Self, LinkError> {
        let server: Server = server.into();
        let url = server.url()?;
        Self::open(&server, &url)
    }

    fn open(server: &Server, url: &Url) -> Result<Self, LinkError> {
        Ok(Self { client: server.client(url)?, place: Place::of(url), connection: Mutex::new(None) })
    }

    async fn connection(&self) -> Result<MultiplexedConnection, LinkError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref() {
            return Ok(connection.clone());
        }
        // Its own limits are half a second: too short for a machine that is busy starting browsers.
        let limits = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(LIMIT))
            .set_response_timeout(Some(LIMIT));
        let making = self.client.get_multiplexed_async_connection_with_config(&limits);
        let made = tokio::time::timeout(LIMIT * 2, making).await;
        let connection = self.read(made)?;
        *held = Some(connection.clone());
        Ok(connection)
    }

    fn read<T>(&self, answer: Result<Result<T, RedisError>, Elapsed>) -> Result<T, LinkError> {
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(LinkError::read(&self.place, error)),
            Err(_) => Err(LinkError::Slow(self.place.clone(), LIMIT)),
        }
    }

    pub async fn run<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, LinkError> {
        let mut connection = self.connection().await?;
        let answer = tokio::time::timeout(LIMIT, command.query_async(&mut connection)).await;
        self.settle(answer).await
    }

    pub async fn run_all<T: FromRedisValue>(&self, commands: &redis::Pipeline) -> Result<T, LinkError> {
        let mut connection = self.connection().await?;
        let answer = tokio::time::timeout(LIMIT, commands.query_async(&mut connection)).await;
        self.settle(answer).await
    }

    async fn settle<T>(&self, answer: Result<Result<T, RedisError>, Elapsed>) -> Result<T, LinkError> {
        let answer = self.read(answer);
        if answer.is_err() {
            *self.connection.lock().await = None;
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use testkit::Redis;

    use super::*;

    #[test]
    fn a_bad_address_is_named_without_its_password() {
        for bad in ["http://:secret@host:1", "redis://", "localhost:6379", "redis:secret@host"] {
            let Err(error) = Link::to(bad) else { panic!("{bad} was taken") };
            assert!(matches!(error, LinkError::Address(_)), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_refusal_and_a_silence_are_told_apart_and_a_server_that_comes_back_is_found() {
        let mut redis = Redis::start().await;
        let link = Link::to(redis.url().as_str()).unwrap();
        link.run::<()>(&redis::cmd("PING")).await.unwrap();
        let refused = link.run::<()>(redis::cmd("XACK").arg("a").arg("b")).await.unwrap_err();
        assert!(refused.is_answer(), "{refused}");
        redis.kill().await;
        let away = link.run::<()>(&redis::cmd("PING")).await.unwrap_err();
        assert!(!away.is_answer(), "{away}");
        redis.restart().await;
        link.run::<()>(&redis::cmd("PING")).await.unwrap();
    }
}
