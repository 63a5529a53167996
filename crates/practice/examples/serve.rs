//! Serves the practice websites by themselves: `cargo run -p webgym-practice --example serve -- 127.0.0.1:4700`.

use std::net::SocketAddr;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let wanted = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4700".to_owned());
    let addr: SocketAddr = wanted.parse().map_err(std::io::Error::other)?;
    let sites = practice::Sites::start(addr)?;
    println!("The practice sites are at {}", sites.url("/"));
    std::future::pending().await
}
