//! `webgym practice`: serves the practice websites and writes their tasks.

use std::{net::IpAddr, path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Args;
use practice::Sites;
use serde_json::json;

use crate::{parent::Parent, signals::Signals};

#[derive(Args)]
pub(crate) struct PracticeArgs {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port to listen on; 0 for any free port.
    #[arg(long, default_value_t = 4700)]
    port: u16,
    /// Write the tasks of the sites to this file (JSON lines).
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,
    /// Stop when the process PID ends. It must be the parent of this one.
    #[arg(long, value_name = "PID")]
    exit_with_parent: Option<i32>,
}

pub(crate) async fn run(args: &PracticeArgs) -> anyhow::Result<ExitCode> {
    let parent = Parent::watch(args.exit_with_parent)?;
    let mut signals = Signals::listen()?;
    let sites = Sites::start((args.host, args.port).into()).with_context(|| {
        format!("cannot listen on {}:{}; choose another port (0 picks a free one)", args.host, args.port)
    })?;
    if let Some(path) = &args.tasks {
        let tasks = practice::task_file(&sites.url("/"))?;
        std::fs::write(path, tasks).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("{}", json!({"event": "listening", "tier": "practice", "url": sites.url("")}));
    tracing::info!(
        "the practice sites are at {}; farms need --allow-private-network to reach them",
        sites.url("/")
    );
    tokio::select! {
        () = signals.next() => {}
        () = parent.ended() => {}
    }
    sites.stop().await;
    Ok(ExitCode::SUCCESS)
}
