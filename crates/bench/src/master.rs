//! Measures the cost of a master: small requests and screenshots through it to simulated nodes. The result is per CPU
//! second of the master, so that the cost of the load on the same cores does not matter.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use client::{farm::Lease, http::Deadline};
use proto::InteractionMode;
use tokio::task::JoinSet;

use crate::{
    BenchError, Better, Options, Report, farm_process::FarmProcess, process_tree::ProcessTree,
    sim_node::SimNode,
};

const NODES: usize = 4;
const INSTANCES_PER_NODE: u16 = 64;
const CALLERS: usize = 32;
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy)]
enum Call {
    Small,
    Screenshot,
}

/// The result of a period of calls.
struct Throughput {
    calls: f64,
    bytes: f64,
    /// CPU seconds used by the master.
    cpu: f64,
    seconds: f64,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    bytes: AtomicU64,
    stop: AtomicBool,
}

pub(crate) async fn measure(
    options: &Options,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let node = SimNode::start(INSTANCES_PER_NODE).await;
        nodes.push(
            node.map_err(|error| BenchError::Start { what: "a node".into(), reason: error.to_string() })?,
        );
    }
    let urls: Vec<&str> = nodes.iter().map(|node| node.url.as_str()).collect();
    for repeat in 1..=options.repeats {
        progress(&format!("a master in front of simulated nodes, {repeat} of {}", options.repeats));
        let master = Arc::new(FarmProcess::master(&options.webgym, &urls).await?);
        let small = measure_calls(&master, Call::Small, options.seconds / 2.0).await?;
        let (higher, neither) = (Better::Higher, Better::Neither);
        report.add("master: small requests per second of its CPU", "1/s", higher, small.calls / small.cpu);
        report.add("master: small requests per second here", "1/s", neither, small.calls / small.seconds);
        let large = measure_calls(&master, Call::Screenshot, options.seconds / 2.0).await?;
        let gigabytes = large.bytes / 1e9;
        report.add("master: GB of screenshots per second of its CPU", "GB/s", higher, gigabytes / large.cpu);
        report.add("master: GB of screenshots per second here", "GB/s", neither, gigabytes / large.seconds);
        if let Ok(master) = Arc::try_unwrap(master) {
            master.stop().await?;
        }
    }
    report.set_target("master: small requests per second of its CPU", 15_000.0);
    report.set_target("master: GB of screenshots per second of its CPU", 1.5);
    Ok(())
}

async fn measure_calls(
    master: &Arc<FarmProcess>,
    call: Call,
    seconds: f64,
) -> Result<Throughput, BenchError> {
    let counts = Arc::new(Counts::default());
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (master, counts) = (Arc::clone(master), Arc::clone(&counts));
        let lease = master.acquire().await?;
        callers.spawn(async move {
            while !counts.stop.load(Ordering::Relaxed) {
                let bytes = send_call(&master, &lease, call).await?;
                counts.calls.fetch_add(1, Ordering::Relaxed);
                counts.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            master.release(&lease).await
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let totals =
        || (counts.calls.load(Ordering::Relaxed) as f64, counts.bytes.load(Ordering::Relaxed) as f64);
    let (before, cpu, start) = (totals(), ProcessTree::of(master.pid).cpu().total(), Instant::now());
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let (after, cpu) = (totals(), ProcessTree::of(master.pid).cpu().total() - cpu);
    let seconds = start.elapsed().as_secs_f64();
    counts.stop.store(true, Ordering::Relaxed);
    while let Some(result) = callers.join_next().await {
        result.map_err(|error| BenchError::Farm(error.to_string()))??;
    }
    Ok(Throughput { calls: after.0 - before.0, bytes: after.1 - before.1, cpu: cpu.max(0.01), seconds })
}

async fn send_call(master: &FarmProcess, lease: &Lease, call: Call) -> Result<u64, BenchError> {
    let deadline = Deadline::after(CALL_TIMEOUT);
    match call {
        Call::Small => Ok(master.client.metadata(lease, deadline).await.map(|_| 0)?),
        Call::Screenshot => {
            let screenshot = master.client.screenshot(lease, InteractionMode::Coordinates, deadline).await;
            Ok(screenshot?.len() as u64)
        }
    }
}
