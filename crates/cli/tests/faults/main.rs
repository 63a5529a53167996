//! Tests named after faults: what breaks in a farm, and what must hold all the same. Real processes, killed and
//! frozen for real.

mod browsers;
mod crowds;
mod draining;
mod ending;
mod identity;
mod masters;
mod mixed;
mod network;
mod nodes;
mod redis;
mod secrets;
mod tenants;

use std::{net::SocketAddr, time::Duration};

use practice::Sites;
use testkit::Webgym;

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

/// A few browsers take moments to start; on a machine that also builds, rather more.
const SECONDS: Duration = Duration::from_secs(30);

/// `webgym` with these words, ready.
async fn webgym(words: &str) -> Webgym {
    Webgym::start(WEBGYM, &words.split_whitespace().collect::<Vec<_>>()).await
}

/// `webgym serve` on free ports, with pages on this machine allowed.
async fn serve(words: &str) -> Webgym {
    webgym(&format!("serve --master-port 0 --node-port 0 --allow-private-network {words}")).await
}

fn sites() -> Sites {
    Sites::start(SocketAddr::from(([127, 0, 0, 1], 0))).expect("the practice sites start")
}
