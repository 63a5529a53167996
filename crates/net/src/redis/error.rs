//! Errors of a Redis connection, worded so that an operator knows what to change. A password is never part of one.

use std::{error::Error, fmt, path::PathBuf, sync::Arc, time::Duration};

use redis::{ErrorKind, RedisError, ServerErrorKind};
use url::Url;

/// The server's address as it may be shown: without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisAddress(String);

impl RedisAddress {
    pub fn from_url(url: &Url) -> Self {
        let port = url.port().unwrap_or(6379);
        Self(format!("{}://{}:{port}", url.scheme(), url.host_str().unwrap_or_default()))
    }

    /// Text that is not the address of a Redis server.
    pub fn from_invalid(text: &str) -> Self {
        Self(redact_password(text))
    }
}

/// `redis://user:secret@host` → `redis://***@host`, also for text that only resembles an address.
pub fn redact_password(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.split_once("://").map(|(scheme, _)| scheme);
            format!("{}***@{host}", scheme.map(|scheme| format!("{scheme}://")).unwrap_or_default())
        }
        None => address.to_owned(),
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RedisConnectionError {
    #[error(
        "\"{0}\" is not a Redis address; use one like redis://127.0.0.1:6379 or rediss://:PASSWORD@HOST:6379"
    )]
    Address(RedisAddress),
    #[error("the certificate of the authority cannot be used ({path}): {reason}")]
    CaFile { path: PathBuf, reason: String },
    #[error("Redis at {0} cannot be reached: {1}")]
    Unreachable(RedisAddress, String),
    #[error(
        "Redis at {0} requires a password: add it to the address, as in redis://:PASSWORD@HOST, preferably through WEBGYM_REDIS"
    )]
    NoPassword(RedisAddress),
    #[error("Redis at {0} rejects the user name or password in the address")]
    WrongPassword(RedisAddress),
    #[error("Redis at {0} does not allow this user to do that: {1}")]
    Forbidden(RedisAddress, String),
    #[error(
        "the certificate of Redis at {0} is not trusted ({1}); pass its authority's certificate with --redis-ca, and use the \
         host name that the certificate is issued for"
    )]
    Certificate(RedisAddress, String),
    #[error("Redis at {0} does not speak TLS ({1}); if that is intended, use redis:// instead of rediss://")]
    NoTls(RedisAddress, String),
    #[error(
        "Redis at {0} closes the connection at once; if it requires TLS, use rediss:// instead of redis://"
    )]
    Closed(RedisAddress),
    #[error("Redis at {0}: {1}")]
    Redis(RedisAddress, RedisError),
    #[error("Redis at {0} did not respond within {limit} s", limit = .1.as_secs())]
    Timeout(RedisAddress, Duration),
}

impl RedisConnectionError {
    /// Returns whether the server responded with a refusal, so that repeating the command cannot help.
    pub fn is_response(&self) -> bool {
        self.code().is_some()
            || matches!(self, Self::WrongPassword(_) | Self::NoPassword(_) | Self::Forbidden(..))
    }

    /// The code that the server's refusal starts with, such as `NOGROUP`.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Redis(_, error) => error.code(),
            _ => None,
        }
    }

    /// Maps an error of the client library to its cause. Reads message text only where the server sends nothing else.
    pub fn classify(address: &RedisAddress, error: RedisError) -> Self {
        let address = address.clone();
        let message = error.to_string();
        if let Some(tls) = tls_error(&error) {
            return match tls {
                rustls::Error::InvalidCertificate(reason) => {
                    Self::Certificate(address, format!("{reason:?}"))
                }
                other => Self::NoTls(address, other.to_string()),
            };
        }
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::WrongPassword(address),
            ErrorKind::Server(ServerErrorKind::NoPerm) => Self::Forbidden(address, message),
            _ if message.contains("NOAUTH") || message.contains("Authentication required") => {
                Self::NoPassword(address)
            }
            _ if message.contains("WRONGPASS") => Self::WrongPassword(address),
            _ if error.is_connection_refusal() => {
                Self::Unreachable(address, "nothing listens on that port".into())
            }
            _ if error.is_connection_dropped() => Self::Closed(address),
            // A server without TLS takes the handshake for a command and waits for its end.
            _ if error.is_timeout() && address.0.starts_with("rediss:") => Self::NoTls(address, message),
            ErrorKind::Io => Self::Unreachable(address, message),
            _ => Self::Redis(address, error),
        }
    }
}

/// Returns the TLS error that caused this error, if any.
fn tls_error(error: &RedisError) -> Option<&rustls::Error> {
    // The client library wraps the I/O error in an `Arc` and returns that as the source.
    let source = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    source.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_never_shown() {
        let url = Url::parse("rediss://user:secret@10.0.0.9/3").unwrap();
        assert_eq!(RedisAddress::from_url(&url).to_string(), "rediss://10.0.0.9:6379");
        for invalid in
            ["http://:secret@host", "redis:secret@host", ":secret@host:1", "redis://a:se@secret@host"]
        {
            let shown = RedisConnectionError::Address(RedisAddress::from_invalid(invalid)).to_string();
            assert!(!shown.contains("secret") && shown.contains("host"), "{shown}");
        }
    }
}
