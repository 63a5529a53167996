//! One database of a Redis server. Connects when needed, forgets a connection that failed, and never waits long.

use std::time::Duration;

use redis::{FromRedisValue, aio::MultiplexedConnection};
use tokio::sync::Mutex;
use url::Url;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("{0:?} is not a Redis address; give one like redis://127.0.0.1:6379")]
    Address(String),
    #[error("Redis: {0}")]
    Redis(#[from] redis::RedisError),
    #[error("Redis did not answer within {} s", .0.as_secs())]
    Slow(Duration),
}

const LIMIT: Duration = Duration::from_secs(3);

pub(crate) struct Link {
    client: redis::Client,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Link {
    pub(crate) fn new(address: &str, database: u8) -> Result<Self, RegistryError> {
        let bad = || RegistryError::Address(address.to_owned());
        let mut url = Url::parse(address).map_err(|_| bad())?;
        if !matches!(url.scheme(), "redis" | "rediss") || url.host().is_none() {
            return Err(bad());
        }
        url.set_path(&database.to_string());
        Ok(Self { client: redis::Client::open(url.as_str())?, connection: Mutex::new(None) })
    }

    async fn connection(&self) -> Result<MultiplexedConnection, RegistryError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref() {
            return Ok(connection.clone());
        }
        let made = tokio::time::timeout(LIMIT, self.client.get_multiplexed_async_connection()).await;
        let connection = made.map_err(|_| RegistryError::Slow(LIMIT))??;
        *held = Some(connection.clone());
        Ok(connection)
    }

    pub(crate) async fn run<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, RegistryError> {
        let mut connection = self.connection().await?;
        let answer = tokio::time::timeout(LIMIT, command.query_async(&mut connection)).await;
        self.settle(answer).await
    }

    pub(crate) async fn run_all<T: FromRedisValue>(
        &self,
        commands: &redis::Pipeline,
    ) -> Result<T, RegistryError> {
        let mut connection = self.connection().await?;
        let answer = tokio::time::timeout(LIMIT, commands.query_async(&mut connection)).await;
        self.settle(answer).await
    }

    async fn settle<T>(
        &self,
        answer: Result<Result<T, redis::RedisError>, tokio::time::error::Elapsed>,
    ) -> Result<T, RegistryError> {
        let answer = match answer {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => RegistryError::Redis(error),
            Err(_) => RegistryError::Slow(LIMIT),
        };
        *self.connection.lock().await = None;
        Err(answer)
    }
}
