//! The stream that `webgym rollout --stream` serves to a trainer while the run goes on.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use rollout::{
    config::{Config, seconds},
    run::{FinishedRun, ReadyRun, StoppedRun},
};
use serde_json::json;
use stream::{EndReason, Stream, StreamListener, StreamOptions, StreamedRun};
use tokio_util::sync::CancellationToken;

use crate::serve::print_event;

const DEFAULT_PORT: u16 = 5100;

#[derive(Args, Clone, Debug)]
pub(crate) struct StreamArgs {
    /// Serve finished trajectories, or complete groups, to a trainer while the run goes on (docs/streaming.md).
    #[arg(long)]
    stream: bool,
    /// Address the stream listens on. Outside loopback, a token is required.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    stream_host: IpAddr,
    /// Port the stream listens on; 0 picks a free one.
    #[arg(long, default_value_t = DEFAULT_PORT, value_name = "PORT")]
    stream_port: u16,
    /// Token for the stream. If one is required and none is given, a token is generated and printed.
    #[arg(long, env = "WEBGYM_STREAM_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    stream_token: Option<String>,
}

impl Default for StreamArgs {
    fn default() -> Self {
        let stream_host = Ipv4Addr::LOCALHOST.into();
        Self { stream: false, stream_host, stream_port: DEFAULT_PORT, stream_token: None }
    }
}

impl StreamArgs {
    /// Checks the configuration and binds the address, before anything of the run starts.
    pub(crate) async fn bind(&self, config: &Config) -> anyhow::Result<Option<StreamListener>> {
        let env = &config.env_config;
        if let (false, Some(max)) = (self.stream, env.max_staleness) {
            bail!(
                "env_config.max_staleness is {max}, but trajectories can be acknowledged only with --stream; add --stream, \
                 or set env_config.max_staleness=null"
            );
        }
        if !self.stream {
            return Ok(None);
        }
        if env.work_queue.is_some() {
            bail!(
                "--stream cannot be used with env_config.work_queue: the attempts of a group, and the tasks that count for \
                 env_config.max_staleness, would be spread over collectors; divide the tasks by ranks instead"
            );
        }
        let address = SocketAddr::new(self.stream_host, self.stream_port);
        let listener =
            StreamListener::bind(StreamOptions { address, token: self.stream_token.clone() }).await;
        listener.map(Some).context("cannot serve the stream (--stream-port)")
    }
}

/// A stream that is being served, and how long it waits for its consumer at the end.
pub(crate) struct RunStream {
    stream: Stream,
    linger: Duration,
}

impl RunStream {
    /// Starts to serve a run and prints the address.
    pub(crate) fn start(listener: StreamListener, run: &ReadyRun) -> anyhow::Result<Self> {
        let (plan, context) = (run.plan(), run.context());
        let (url, port) = (listener.url(), listener.address().port());
        let mut event = json!({"event": "listening", "tier": "stream", "url": url, "port": port});
        if let Some(token) = listener.generated_token() {
            event["token"] = token.into();
        }
        let stream = listener.start(StreamedRun {
            journal: context.journal.clone(),
            id: plan.id,
            save_path: plan.save_path.clone(),
            group_size: plan.group_size,
            total: plan.total,
            pause: context.pause.clone(),
            starts: run.starts().clone(),
        })?;
        print_event(&event);
        tracing::info!("finished trajectories are streamed at {url}/stream");
        Ok(Self { stream, linger: seconds(run.config().env_config.stream_linger) })
    }

    /// Ends the stream. After a finished run, its consumer has time to take and acknowledge the last items.
    /// Returns how many it has not acknowledged because the run was stopped meanwhile.
    pub(crate) async fn finish(
        self,
        run: &Result<FinishedRun, StoppedRun>,
        stop: &CancellationToken,
    ) -> usize {
        let reason = match run {
            Ok(run) if run.collected.unfinished == 0 => EndReason::Finished,
            Ok(_) => EndReason::Stopped,
            Err(error) => EndReason::Failed(describe(error)),
        };
        let left = self.stream.finish(reason, self.linger, stop).await;
        usize::try_from(left).unwrap_or(usize::MAX)
    }
}

/// Describes an error with its causes.
fn describe(error: &StoppedRun) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
