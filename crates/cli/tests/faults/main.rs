//! Fault tests of a farm: each causes a fault and checks what must hold in spite of it. The processes are real and are
//! really killed and frozen.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod browsers;
mod cdp;
mod contention;
mod draining;
mod identity;
mod live;
mod masters;
mod network;
mod nodes;
mod python_interop;
mod redis;
mod redis_auth;
mod shutdown;
mod tenants;

use std::{net::SocketAddr, time::Duration};

use practice::Sites;
use testkit::Webgym;

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

/// Limit for everything that must happen. It is generous because browsers start slowly on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts `webgym` with these arguments and waits until it is ready.
async fn webgym(arguments: &str) -> Webgym {
    Webgym::start(WEBGYM, &arguments.split_whitespace().collect::<Vec<_>>()).await
}

/// Starts `webgym serve` on free ports, with access to pages on this machine.
async fn serve(arguments: &str) -> Webgym {
    webgym(&format!("serve --master-port 0 --node-port 0 --allow-private-network {arguments}")).await
}

fn sites() -> Sites {
    Sites::start(SocketAddr::from(([127, 0, 0, 1], 0))).expect("the practice sites start")
}
