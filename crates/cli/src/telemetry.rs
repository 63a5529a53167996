//! Logs go to standard error, for people; standard output is for programs.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// `WEBGYM_LOG` overrides what the flags say.
pub(crate) fn start(quiet: bool, verbose: u8) {
    let level = match (quiet, verbose) {
        (true, _) => "warn",
        (false, 0) => "info",
        (false, 1) => "debug",
        (false, _) => "trace",
    };
    let ours = ["webgym", "browser", "cdp", "farm", "rollout", "store", "web"]
        .map(|room| format!("{room}={level}"))
        .join(",");
    let filter = std::env::var("WEBGYM_LOG").unwrap_or_else(|_| format!("warn,{ours}"));
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(verbose > 0)
        .init();
}
