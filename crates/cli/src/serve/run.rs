//! Runs a started farm: prints its addresses, waits until it is ready, and drains and stops it after a signal.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};

use farm::{Farm, PoolCounts};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{
    format::count_of,
    parent::Parent,
    signals::{Signals, StopSignal},
};

/// Prints an event as a line of JSON for the program that started us; nothing on a terminal, where the log says it.
pub(crate) fn print_event(event: &serde_json::Value) {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        return;
    }
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}

/// Runs the farm until a stop signal or the end of its parent. On SIGTERM its leases get the time `drain` to end.
pub(super) async fn run(
    farm: Farm,
    drain: Duration,
    parent: Parent,
    quiet: bool,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    for bound in farm.bound() {
        print_event(
            &json!({"event": "listening", "tier": bound.tier, "url": bound.url, "port": bound.address.port()}),
        );
    }
    tokio::select! {
        () = wait_until_ready(&farm, quiet) => {}
        () = signals.next() => return stop(farm, signals).await,
        () = parent.ended() => return stop(farm, signals).await,
    }
    let signal = tokio::select! {
        signal = signals.next_kind() => signal,
        () = parent.ended() => StopSignal::Interrupt,
    };
    if signal == StopSignal::Terminate && !drain.is_zero() {
        tokio::select! {
            () = wait_for_leases(&farm, drain, &mut signals) => {}
            () = parent.ended() => {}
        }
    }
    stop(farm, signals).await
}

async fn wait_until_ready(farm: &Farm, quiet: bool) {
    let started = std::time::Instant::now();
    let capacity = farm.pool().map_or(0, |pool| pool.counts().capacity);
    let shown = !quiet && capacity > 0 && std::io::stderr().is_terminal();
    let bar = if shown { ProgressBar::new(capacity as u64) } else { ProgressBar::hidden() };
    let style = ProgressStyle::with_template("{msg} {bar:32} {pos}/{len} instances");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message("starting");
    let mut last = PoolCounts::default();
    farm.ready(|counts| {
        bar.set_length(counts.capacity as u64);
        bar.set_position((counts.available + counts.in_use) as u64);
        last = *counts;
    })
    .await;
    bar.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    print_event(
        &json!({"event": "ready", "instances": last.capacity, "seconds": (seconds * 1000.0).round() / 1000.0}),
    );
    let front = farm.bound().last().map(|bound| bound.url.clone()).unwrap_or_default();
    let what = match last.capacity {
        0 => "a master".to_owned(),
        capacity => count_of(capacity, "instance"),
    };
    tracing::info!("ready: {what} in {seconds:.1} s at {front} (API at {front}/docs)");
}

/// Waits for the leases to end, up to a limit or a second signal.
async fn wait_for_leases(farm: &Farm, limit: Duration, signals: &mut Signals) {
    let held = farm.pool().map_or(0, |pool| pool.counts().in_use);
    print_event(&json!({"event": "draining", "in_use": held}));
    tracing::info!(
        "draining {} for at most {} s; send the signal again to stop without waiting",
        count_of(held, "lease"),
        limit.as_secs()
    );
    tokio::select! {
        all = farm.drain(limit) => {
            if !all {
                tracing::warn!("some leases did not end in time and are closed");
            }
        }
        () = signals.next() => {}
    }
}

async fn stop(farm: Farm, mut signals: Signals) -> anyhow::Result<ExitCode> {
    tracing::info!("stopping; send the signal again to exit immediately");
    tokio::select! {
        clean = farm.stop() => {
            if !clean {
                tracing::warn!("some requests did not end in time and were cancelled");
            }
            Ok(ExitCode::SUCCESS)
        }
        // The reapers of the browsers clean up after us.
        () = signals.next() => Ok(ExitCode::from(130)),
    }
}
