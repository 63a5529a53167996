//! Checks options before anything is started, and the errors of a start.

use std::net::IpAddr;

use crate::{api::Key, identity::InvalidNodeId, options::PoolOptions, registry::RegistryError};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Listen(#[from] std::io::Error),
    #[error("{0}")]
    Registry(#[from] RegistryError),
    #[error(
        "refusing to listen on {0} with the well-known default key: anyone who can reach it could drive your browsers. \
         Set your own key with --api-key or WEBGYM_API_KEY"
    )]
    DefaultKey(IpAddr),
    #[error("the API key is empty; set one, or leave it out to use the default key on loopback")]
    EmptyKey,
    #[error("the API key cannot be sent as a header; use printable ASCII without line breaks")]
    UnusableKey,
    #[error("{0:?} is not the address of a node; use one like http://10.0.0.5:8080")]
    NodeAddress(String),
    #[error("{0}")]
    NodeId(#[from] InvalidNodeId),
    #[error("a farm needs at least one instance")]
    NoInstances,
    #[error("{0} instances starting at slot {1} would exceed slot 65535")]
    TooManySlots(usize, u16),
}

/// The key on loopback when none is configured, as existing scripts expect.
pub const DEFAULT_KEY: &str = "default_key";

pub(super) fn check_node_url(url: &str) -> Result<String, StartError> {
    let url = url.trim_end_matches('/').to_owned();
    if !url.starts_with("http://") || url::Url::parse(&url).is_err() {
        return Err(StartError::NodeAddress(url));
    }
    Ok(url)
}

pub(super) fn check_key(key: &str, host: IpAddr) -> Result<Key, StartError> {
    if key == DEFAULT_KEY && !host.is_loopback() {
        return Err(StartError::DefaultKey(host));
    }
    if key.trim().is_empty() {
        return Err(StartError::EmptyKey);
    }
    let key = Key::new(key);
    if key.header().is_none() { Err(StartError::UnusableKey) } else { Ok(key) }
}

pub(super) fn check_pool(pool: &PoolOptions) -> Result<(), StartError> {
    if pool.instances == 0 {
        return Err(StartError::NoInstances);
    }
    if usize::from(pool.first_port) + pool.instances > 65_536 {
        return Err(StartError::TooManySlots(pool.instances, pool.first_port));
    }
    Ok(())
}
