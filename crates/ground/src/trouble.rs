//! What can be wrong with a Redis server, said so that it can be mended. A password is never part of it.

use std::{error::Error, fmt, path::PathBuf, sync::Arc, time::Duration};

use redis::{ErrorKind, RedisError, ServerErrorKind};
use url::Url;

/// The server as it may be shown: without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(String);

impl Place {
    pub fn of(url: &Url) -> Self {
        let port = url.port().unwrap_or(6379);
        Self(format!("{}://{}:{port}", url.scheme(), url.host_str().unwrap_or_default()))
    }

    /// Something that is no address, or not one of ours.
    pub fn odd(text: &str) -> Self {
        Self(without_password(text))
    }
}

/// `redis://user:secret@host` → `redis://***@host`, also of text that only looks like an address.
pub fn without_password(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.split_once("://").map(|(scheme, _)| scheme);
            format!("{}***@{host}", scheme.map(|scheme| format!("{scheme}://")).unwrap_or_default())
        }
        None => address.to_owned(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error(
        "\"{0}\" is not a Redis address; give one like redis://127.0.0.1:6379 or rediss://:PASSWORD@HOST:6379"
    )]
    Address(Place),
    #[error("the certificate of the authority cannot be used ({path}): {why}")]
    CaFile { path: PathBuf, why: String },
    #[error("Redis at {0} cannot be reached: {1}")]
    Unreachable(Place, String),
    #[error(
        "Redis at {0} wants a password: give it in the address, as in redis://:PASSWORD@HOST, best in WEBGYM_REDIS"
    )]
    NoPassword(Place),
    #[error("Redis at {0} refuses the user name or password in the address")]
    WrongPassword(Place),
    #[error("Redis at {0} does not let this user do that: {1}")]
    Forbidden(Place, String),
    #[error(
        "the certificate of Redis at {0} is not trusted ({1}); give that of its authority with --redis-ca, and the name it is \
         made out to as the host"
    )]
    Certificate(Place, String),
    #[error(
        "Redis at {0} does not speak TLS ({1}); if it is meant to be without, write redis:// instead of rediss://"
    )]
    NoTls(Place, String),
    #[error("Redis at {0} hangs up at once; if it wants TLS, write rediss:// instead of redis://")]
    HungUp(Place),
    #[error("Redis at {0}: {1}")]
    Redis(Place, RedisError),
    #[error("Redis at {0} did not answer within {limit} s", limit = .1.as_secs())]
    Slow(Place, Duration),
}

impl LinkError {
    /// The server has answered: it knows the command and refuses it. Asking again will not help.
    pub fn is_answer(&self) -> bool {
        self.code().is_some()
            || matches!(self, Self::WrongPassword(_) | Self::NoPassword(_) | Self::Forbidden(..))
    }

    /// The word a refusal begins with, such as `NOGROUP`.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Redis(_, error) => error.code(),
            _ => None,
        }
    }

    /// What an error of the client means. Words are looked at only where the server gives nothing else.
    pub fn read(place: &Place, error: RedisError) -> Self {
        let place = place.clone();
        let words = error.to_string();
        if let Some(tls) = tls_error(&error) {
            return match tls {
                rustls::Error::InvalidCertificate(why) => Self::Certificate(place, format!("{why:?}")),
                other => Self::NoTls(place, other.to_string()),
            };
        }
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::WrongPassword(place),
            ErrorKind::Server(ServerErrorKind::NoPerm) => Self::Forbidden(place, words),
            _ if words.contains("NOAUTH") || words.contains("Authentication required") => {
                Self::NoPassword(place)
            }
            _ if words.contains("WRONGPASS") => Self::WrongPassword(place),
            _ if error.is_connection_refusal() => Self::Unreachable(place, "nothing listens there".into()),
            _ if error.is_connection_dropped() => Self::HungUp(place),
            // A server without TLS waits for the rest of what it takes for a command.
            _ if error.is_timeout() && place.0.starts_with("rediss:") => Self::NoTls(place, words),
            ErrorKind::Io => Self::Unreachable(place, words),
            _ => Self::Redis(place, error),
        }
    }
}

/// The TLS error behind an error, if one is.
fn tls_error(error: &RedisError) -> Option<&rustls::Error> {
    // The client keeps the error it met in an `Arc`, and that is what it names as the source.
    let met = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    met.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let url = Url::parse("rediss://user:secret@10.0.0.9/3").unwrap();
        assert_eq!(Place::of(&url).to_string(), "rediss://10.0.0.9:6379");
        for odd in ["http://:secret@host", "redis:secret@host", ":secret@host:1", "redis://a:se@secret@host"]
        {
            let shown = LinkError::Address(Place::odd(odd)).to_string();
            assert!(!shown.contains("secret") && shown.contains("host"), "{shown}");
        }
    }
}
