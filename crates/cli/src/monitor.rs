//! The monitor of a run, beside it; and `webgym monitor`, which shows a run that goes on elsewhere.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use rollout::{config::Config, episode::Surroundings, plan::Plan, run::state::Board};
use web::{
    monitor::{About, Monitor, Watched, relay},
    page,
};

use crate::signals::Signals;

/// How long the run's monitor gets for its first answer.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// Where a run's own monitor listens; its port is `env_config.monitor_port`.
#[derive(Args, Clone, Debug)]
pub(crate) struct WatchingArgs {
    /// Address the monitor listens on. Beyond loopback it asks for a token.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    monitor_host: IpAddr,
    /// Token for the monitor; made up and printed when one is needed and none is given.
    #[arg(long, env = "WEBGYM_MONITOR_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    monitor_token: Option<String>,
}

impl Default for WatchingArgs {
    fn default() -> Self {
        Self { monitor_host: Ipv4Addr::LOCALHOST.into(), monitor_token: None }
    }
}

impl WatchingArgs {
    /// Starts the monitor of a run, says where it is, and lets the run go on without it where that fails.
    pub(crate) async fn start(
        &self,
        config: &Config,
        plan: &Plan,
        board: &Arc<Board>,
        around: &Surroundings,
    ) -> Option<Monitor> {
        let port = config.env_config.monitor_port?;
        let watched = || Watched {
            board: Arc::clone(board),
            about: about(config, plan, around),
            policy: Some(around.policy.clone()),
            judge_places: config.env_config.evaluation_workers,
            farm: Some(around.farm.clone()),
        };
        let at = |port| SocketAddr::new(self.monitor_host, port);
        let mut started = Monitor::start(watched(), at(port), self.monitor_token.clone()).await;
        if matches!(&started, Err(error) if error.kind() == std::io::ErrorKind::AddrInUse) {
            tracing::info!("port {port} is taken; the monitor takes another");
            started = Monitor::start(watched(), at(0), self.monitor_token.clone()).await;
        }
        match started {
            Ok(monitor) => {
                tracing::info!("watch this run at {}", monitor.shown_link());
                Some(monitor)
            }
            Err(error) => {
                tracing::warn!("no monitor: {error}");
                None
            }
        }
    }
}

fn about(config: &Config, plan: &Plan, around: &Surroundings) -> About {
    let name = plan.save_path.root().file_name().unwrap_or_default();
    About {
        name: name.to_string_lossy().into_owned(),
        split: plan.id.split.as_str().to_owned(),
        iteration: plan.id.iteration,
        model: around.settings.model.clone(),
        judge: serde_json::to_value(config.judge)
            .ok()
            .and_then(|judge| Some(judge.as_str()?.to_owned()))
            .unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

#[derive(Args)]
pub(crate) struct MonitorArgs {
    /// Address of the run's monitor, as that run printed it (with its ?token=…, if it has one).
    #[arg(long, value_name = "http://HOST:5000")]
    url: String,
    /// Address to listen on. Beyond loopback a token is asked for.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    host: IpAddr,
    /// Port to listen on; 0 picks a free one.
    #[arg(long, default_value_t = 5002)]
    port: u16,
    /// Token of the run's monitor.
    #[arg(long, env = "WEBGYM_MONITOR_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
}

pub(crate) async fn run(args: &MonitorArgs) -> anyhow::Result<ExitCode> {
    check_address(&args.url)?;
    let routes = relay(&args.url, args.token.as_deref())?;
    let mut signals = Signals::listen()?;
    let mut place = page::serve(SocketAddr::new(args.host, args.port), None, routes)
        .await
        .context("the monitor cannot be shown here")?;
    let watched = args.url.split('?').next().unwrap_or_default();
    println!("Watching {watched} at {}", place.shown_link());
    if let Err(why) = reach(&args.url, args.token.as_deref()).await {
        tracing::warn!("{watched} cannot be shown yet: {why}. The page keeps on trying");
    }
    tokio::select! {
        () = signals.next() => {}
        () = place.forever() => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn check_address(url: &str) -> anyhow::Result<()> {
    let address = url.parse::<axum::http::Uri>().ok();
    let whole = address.is_some_and(|address| {
        matches!(address.scheme_str(), Some("http" | "https"))
            && address.authority().is_some_and(|place| {
                let named = place.as_str().rsplit('@').next() == Some(place.host());
                !place.host().is_empty() && (named || place.port_u16().is_some())
            })
    });
    anyhow::ensure!(whole, "{url:?} is no address of a monitor; it looks like http://HOST:5000");
    Ok(())
}

/// Asks the run's monitor once, so that who is not there is told now and not only on the page.
async fn reach(url: &str, token: Option<&str>) -> Result<(), String> {
    let (root, query) = url.split_once('?').unwrap_or((url, ""));
    let root = root.trim_end_matches('/');
    let token = token.or_else(|| query.split('&').find_map(|pair| pair.strip_prefix("token=")));
    let mut request = client::http::client(root)?.get(format!("{root}/status")).timeout(FIRST_LOOK);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let answer = request.send().await.map_err(|error| {
        if error.is_timeout() { "it does not answer".to_owned() } else { "nobody listens there".to_owned() }
    })?;
    match answer.status().as_u16() {
        200 => Ok(()),
        401 if token.is_none() => {
            Err("it wants a token: give --token, or the whole link that the run printed".into())
        }
        401 => Err("it does not take this token".into()),
        status => Err(format!("it answers {status}, which no monitor does")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused() {
        for good in ["http://127.0.0.1:5000", "https://example.org/monitor/?token=x", "http://[::1]:5000/"] {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in ["127.0.0.1:5000", "http://", "http://a b:5000", "http://a:99999", "ftp://a:5000", ""] {
            let said = check_address(bad).unwrap_err().to_string();
            assert!(said.contains("http://HOST:5000"), "{bad}: {said}");
        }
    }
}
