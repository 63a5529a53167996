//! One database of a Redis server. Connects on first use, drops a connection that failed, and bounds every call.

use std::{path::PathBuf, time::Duration};

use redis::{AsyncConnectionConfig, FromRedisValue, RedisError, TlsCertificates, aio::MultiplexedConnection};
use tokio::{sync::Mutex, time::error::Elapsed};
use url::Url;

use super::{RedisAddress, RedisConnectionError};

const PEM_HEADER: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// Limit of one call. The client's own default is half a second: too short for a machine that is busy starting
/// browsers.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// Where Redis is and which certificate authority to trust.
#[derive(Clone, Debug)]
pub struct RedisServer {
    /// `redis://` or `rediss://`, with user and password if the server requires them.
    pub address: String,
    /// The authority (PEM file) that must have signed the server's certificate. By default those that this machine trusts.
    pub ca: Option<PathBuf>,
}

impl From<&str> for RedisServer {
    fn from(address: &str) -> Self {
        Self::new(address)
    }
}

impl From<&Self> for RedisServer {
    fn from(server: &Self) -> Self {
        server.clone()
    }
}

impl RedisServer {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), ca: None }
    }

    fn url(&self) -> Result<Url, RedisConnectionError> {
        let invalid = || RedisConnectionError::Address(RedisAddress::from_invalid(&self.address));
        let url = Url::parse(&self.address).map_err(|_| invalid())?;
        if !matches!(url.scheme(), "redis" | "rediss") || url.host_str().is_none_or(str::is_empty) {
            return Err(invalid());
        }
        Ok(url)
    }

    fn client(&self, url: &Url) -> Result<redis::Client, RedisConnectionError> {
        if url.scheme() == "rediss" {
            // Only the first call of the process takes effect; all of ours install the same provider.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let classify = |error| RedisConnectionError::classify(&RedisAddress::from_url(url), error);
        let Some(path) = self.ca.as_ref().filter(|_| url.scheme() == "rediss") else {
            return redis::Client::open(url.as_str()).map_err(classify);
        };
        let unusable = |reason: String| RedisConnectionError::CaFile { path: path.clone(), reason };
        let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
        if !pem.windows(PEM_HEADER.len()).any(|part| part == PEM_HEADER) {
            return Err(unusable("it contains no certificate in PEM format".into()));
        }
        let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem) };
        redis::Client::build_with_tls(url.as_str(), certificates).map_err(|error| unusable(error.to_string()))
    }
}

/// A connection to one database that reconnects on the next call after a failure.
pub struct RedisConnection {
    client: redis::Client,
    address: RedisAddress,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl RedisConnection {
    /// Uses `database`, whatever the address names.
    pub fn to_database(server: impl Into<RedisServer>, database: u8) -> Result<Self, RedisConnectionError> {
        let server: RedisServer = server.into();
        let mut url = server.url()?;
        url.set_path(&database.to_string());
        Self::open(&server, &url)
    }

    /// Uses the database that the address names; 0 if it names none.
    pub fn to(server: impl Into<RedisServer>) -> Result<Self, RedisConnectionError> {
        let server: RedisServer = server.into();
        let url = server.url()?;
        Self::open(&server, &url)
    }

    fn open(server: &RedisServer, url: &Url) -> Result<Self, RedisConnectionError> {
        Ok(Self {
            client: server.client(url)?,
            address: RedisAddress::from_url(url),
            connection: Mutex::new(None),
        })
    }

    async fn connection(&self) -> Result<MultiplexedConnection, RedisConnectionError> {
        let mut current = self.connection.lock().await;
        if let Some(connection) = current.as_ref() {
            return Ok(connection.clone());
        }
        let limits = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CALL_TIMEOUT))
            .set_response_timeout(Some(CALL_TIMEOUT));
        let connecting = self.client.get_multiplexed_async_connection_with_config(&limits);
        let connection = self.classify(tokio::time::timeout(CALL_TIMEOUT * 2, connecting).await)?;
        *current = Some(connection.clone());
        Ok(connection)
    }

    fn classify<T>(
        &self,
        response: Result<Result<T, RedisError>, Elapsed>,
    ) -> Result<T, RedisConnectionError> {
        match response {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(RedisConnectionError::classify(&self.address, error)),
            Err(_) => Err(RedisConnectionError::Timeout(self.address.clone(), CALL_TIMEOUT)),
        }
    }

    /// Runs one command.
    pub async fn run<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, RedisConnectionError> {
        let mut connection = self.connection().await?;
        let response = tokio::time::timeout(CALL_TIMEOUT, command.query_async(&mut connection)).await;
        self.finish(response).await
    }

    /// Runs a pipeline of commands.
    pub async fn run_all<T: FromRedisValue>(
        &self,
        commands: &redis::Pipeline,
    ) -> Result<T, RedisConnectionError> {
        let mut connection = self.connection().await?;
        let response = tokio::time::timeout(CALL_TIMEOUT, commands.query_async(&mut connection)).await;
        self.finish(response).await
    }

    /// Drops the connection after an error, so that the next call reconnects.
    async fn finish<T>(
        &self,
        response: Result<Result<T, RedisError>, Elapsed>,
    ) -> Result<T, RedisConnectionError> {
        let response = self.classify(response);
        if response.is_err() {
            *self.connection.lock().await = None;
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use testkit::Redis;

    use super::*;

    #[test]
    fn invalid_address_is_reported_without_password() {
        for invalid in ["http://:secret@host:1", "redis://", "localhost:6379", "redis:secret@host"] {
            let Err(error) = RedisConnection::to(invalid) else { panic!("{invalid} was accepted") };
            assert!(matches!(error, RedisConnectionError::Address(_)), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[tokio::test]
    async fn refusal_and_lost_server_differ_and_restart_reconnects() {
        let mut redis = Redis::start().await;
        let connection = RedisConnection::to(redis.url().as_str()).unwrap();
        connection.run::<()>(&redis::cmd("PING")).await.unwrap();
        let refused = connection.run::<()>(redis::cmd("XACK").arg("a").arg("b")).await.unwrap_err();
        assert!(refused.is_response(), "{refused}");
        redis.kill().await;
        let lost = connection.run::<()>(&redis::cmd("PING")).await.unwrap_err();
        assert!(!lost.is_response(), "{lost}");
        redis.restart().await;
        connection.run::<()>(&redis::cmd("PING")).await.unwrap();
    }
}
