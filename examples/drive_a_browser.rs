//! Acquires a browser session of a farm, opens a page, prints what an agent would see, and releases the session.
//! Start a farm with `webgym serve 1` first.

use std::{env, error::Error, fs, time::Duration};

use client::{
    farm::{FarmClient, FarmClientOptions, ObserveOptions},
    http::Deadline,
};
use proto::{Command, InteractionMode, SessionOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "https://example.com".to_owned());
    let key = env::var("WEBGYM_API_KEY").unwrap_or_else(|_| "default_key".to_owned());
    let farm = FarmClient::new("http://127.0.0.1:7000", &key, FarmClientOptions::default())?;
    let deadline = Deadline::after(Duration::from_secs(60));

    // A repeated request with the same idempotency key returns the same lease.
    let options = SessionOptions::default();
    let lease = farm.acquire(10, Some(30), "drive-a-browser", &options, deadline).await?.lease;
    let include = ObserveOptions::for_step(InteractionMode::SetOfMarks);
    let observation = farm.step(&lease, &Command::VisitPage { url }, &include, deadline).await;
    farm.release(&lease, deadline).await?;

    let observation = observation?;
    if let Some(failure) = observation.failure {
        return Err(failure.into());
    }
    if let Some(page) = observation.metadata {
        println!("{} ({})", page.title, page.url);
    }
    println!("{}", observation.ac_tree.unwrap_or_default());
    if let Some(screenshot) = observation.screenshot {
        fs::write("screenshot.png", &screenshot.data)?;
        println!("{} × {} pixels in screenshot.png", screenshot.width, screenshot.height);
    }
    Ok(())
}
