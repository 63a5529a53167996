//! The monitor that `webgym rollout` starts for its run, and `webgym monitor`, which shows a run on another machine or the
//! training loop of a save path.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use rollout::{config::Config, episode::EpisodeContext, plan::Plan, run::state::RunState};
use store::SavePath;
use web::{
    monitor::{Monitor, MonitoredRun, RunInfo, relay},
    server::{self, PageServer},
    training_loop::{self, LoopView},
};

use crate::signals::Signals;

/// Timeout of the check whether the run's monitor responds.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of the monitor that a run starts. Its port is `env_config.monitor_port`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunMonitorArgs {
    /// Address the monitor listens on. Outside loopback, a token is required.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    monitor_host: IpAddr,
    /// Token for the monitor. If one is required and none is given, a token is generated and printed.
    #[arg(long, env = "WEBGYM_MONITOR_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    monitor_token: Option<String>,
}

impl Default for RunMonitorArgs {
    fn default() -> Self {
        Self { monitor_host: Ipv4Addr::LOCALHOST.into(), monitor_token: None }
    }
}

impl RunMonitorArgs {
    /// Starts the monitor of a run and logs its address. If that fails, logs a warning and the run continues without it.
    pub(crate) async fn start(
        &self,
        config: &Config,
        plan: &Plan,
        state: &Arc<RunState>,
        context: &EpisodeContext,
    ) -> Option<Monitor> {
        self.serve(config.env_config.monitor_port?, || MonitoredRun {
            run: Arc::clone(state),
            info: run_info(config, plan, context),
            policy: Some(context.policy.clone()),
            judge_slots: config.env_config.evaluation_workers,
            farm: Some(context.farm.clone()),
            save_path: Some(plan.save_path.clone()),
        })
        .await
    }

    /// Starts a monitor at this port, or at a free one if it is in use.
    pub(crate) async fn serve(&self, port: u16, monitored: impl Fn() -> MonitoredRun) -> Option<Monitor> {
        let address = |port| SocketAddr::new(self.monitor_host, port);
        let mut started = Monitor::start(monitored(), address(port), self.monitor_token.clone()).await;
        if matches!(&started, Err(error) if error.kind() == std::io::ErrorKind::AddrInUse) {
            tracing::info!("port {port} is in use; the monitor uses another port");
            started = Monitor::start(monitored(), address(0), self.monitor_token.clone()).await;
        }
        match started {
            Ok(monitor) => {
                tracing::info!("watch this run at {}", monitor.shown_link());
                Some(monitor)
            }
            Err(error) => {
                tracing::warn!("cannot start the monitor; the run continues without it: {error}");
                None
            }
        }
    }
}

fn run_info(config: &Config, plan: &Plan, context: &EpisodeContext) -> RunInfo {
    let name = plan.save_path.root().file_name().unwrap_or_default();
    RunInfo {
        name: name.to_string_lossy().into_owned(),
        split: plan.id.split.as_str().to_owned(),
        iteration: Some(plan.id.iteration),
        model: context.settings.model.clone(),
        judge: judge_name(config),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Returns the judge as the configuration names it.
pub(crate) fn judge_name(config: &Config) -> String {
    let judge = serde_json::to_value(config.judge).ok();
    judge.and_then(|judge| Some(judge.as_str()?.to_owned())).unwrap_or_default()
}

#[derive(Args)]
pub(crate) struct MonitorArgs {
    /// The save path of a training loop (webgym loop) to watch.
    #[arg(value_name = "SAVE_PATH", required_unless_present = "url", conflicts_with = "url")]
    save_path: Option<PathBuf>,
    /// Address of a run's monitor as printed by that run, including its ?token=… if there is one.
    #[arg(long, value_name = "http://HOST:5000")]
    url: Option<String>,
    /// Address to listen on. Outside loopback, a token is required.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    host: IpAddr,
    /// Port to listen on; 0 picks a free port.
    #[arg(long, default_value_t = 5002)]
    port: u16,
    /// Token of the run's monitor; with SAVE_PATH, the token that this page requires outside loopback.
    #[arg(long, env = "WEBGYM_MONITOR_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
}

pub(crate) async fn run(args: &MonitorArgs) -> anyhow::Result<ExitCode> {
    match (&args.url, &args.save_path) {
        (Some(url), _) => watch_run(args, url).await,
        (None, Some(save_path)) => watch_loop(args, save_path).await,
        (None, None) => anyhow::bail!("give a save path, or --url with the address of a run's monitor"),
    }
}

async fn watch_run(args: &MonitorArgs, url: &str) -> anyhow::Result<ExitCode> {
    check_address(url)?;
    let routes = relay(url, args.token.as_deref())?;
    let target = url.split('?').next().unwrap_or_default();
    let signals = Signals::listen()?;
    let server = serve(args, None, routes, target).await?;
    if let Err(reason) = check_reachable(url, args.token.as_deref()).await {
        tracing::warn!("cannot reach {target}: {reason}. The page keeps trying");
    }
    wait(signals, server).await
}

async fn watch_loop(args: &MonitorArgs, save_path: &Path) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        !save_path.exists() || save_path.is_dir(),
        "{} is not a folder; give the save path of a loop",
        save_path.display()
    );
    let save_path = std::path::absolute(save_path)?;
    let target = format!("the loop of {}", save_path.display());
    let view = LoopView::new(SavePath::new(save_path), false);
    if !view.has_loop() {
        tracing::warn!("{target} has not begun; the page shows it as soon as webgym loop has started");
    }
    let signals = Signals::listen()?;
    let server = serve(args, args.token.clone(), training_loop::router(view), &target).await?;
    wait(signals, server).await
}

async fn serve(
    args: &MonitorArgs,
    token: Option<String>,
    routes: axum::Router,
    target: &str,
) -> anyhow::Result<PageServer> {
    let address = SocketAddr::new(args.host, args.port);
    let server = server::serve(address, token, routes).await.context("cannot serve the monitor")?;
    println!("Watching {target} at {}", server.shown_link());
    Ok(server)
}

async fn wait(mut signals: Signals, mut server: PageServer) -> anyhow::Result<ExitCode> {
    tokio::select! {
        () = signals.next() => {}
        () = server.wait() => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn check_address(url: &str) -> anyhow::Result<()> {
    let address = url.parse::<axum::http::Uri>().ok();
    let is_valid = address.is_some_and(|address| {
        matches!(address.scheme_str(), Some("http" | "https"))
            && address.authority().is_some_and(|authority| {
                let has_no_port = authority.as_str().rsplit('@').next() == Some(authority.host());
                !authority.host().is_empty() && (has_no_port || authority.port_u16().is_some())
            })
    });
    anyhow::ensure!(
        is_valid,
        "{url:?} is not the address of a monitor; expected something like http://HOST:5000"
    );
    Ok(())
}

/// Requests the status of the run's monitor once, so that a wrong address is reported here and not only on the page.
async fn check_reachable(url: &str, token: Option<&str>) -> Result<(), String> {
    let (root, query) = url.split_once('?').unwrap_or((url, ""));
    let root = root.trim_end_matches('/');
    let token = token.or_else(|| query.split('&').find_map(|pair| pair.strip_prefix("token=")));
    let mut request = client::http::client(root)?.get(format!("{root}/status")).timeout(CHECK_TIMEOUT);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let response = request.send().await.map_err(|error| {
        if error.is_timeout() { "it does not respond".to_owned() } else { "nothing listens there".to_owned() }
    })?;
    match response.status().as_u16() {
        200 => Ok(()),
        401 if token.is_none() => {
            Err("it requires a token: pass --token, or the complete link that the run printed".into())
        }
        401 => Err("it does not accept this token".into()),
        status => Err(format!("it responds with status {status}, so it is not a monitor")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_address_is_refused() {
        for good in ["http://127.0.0.1:5000", "https://example.org/monitor/?token=x", "http://[::1]:5000/"] {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in ["127.0.0.1:5000", "http://", "http://a b:5000", "http://a:99999", "ftp://a:5000", ""] {
            let message = check_address(bad).unwrap_err().to_string();
            assert!(message.contains("http://HOST:5000"), "{bad}: {message}");
        }
    }
}
