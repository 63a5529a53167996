//! Serves the practice websites: `cargo run -p webgym-practice --example serve -- 127.0.0.1:4700`.

use std::net::SocketAddr;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let addr = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4700".to_owned());
    let addr: SocketAddr = addr.parse().map_err(std::io::Error::other)?;
    let sites = practice::Sites::start(addr)?;
    println!("The practice sites are at {}", sites.url("/"));
    std::future::pending().await
}
