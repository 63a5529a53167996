//! What a master costs: small requests and pictures through it to simulated nodes, by its own CPU time, so that the load's
//! own cost on the same cores does not matter.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use client::{
    farm::{ClientError, Lease},
    http::Deadline,
};
use proto::InteractionMode;
use tokio::task::JoinSet;

use crate::{BenchError, Better, Options, Report, farm::Farm, meter::Tree, sim_node::SimNode};

const NODES: usize = 4;
const INSTANCES: u16 = 64;
const CALLERS: usize = 32;
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy)]
enum Call {
    Small,
    Picture,
}

/// What a while of calls came to.
struct Carried {
    calls: f64,
    bytes: f64,
    /// CPU seconds of the master.
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
    tell: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let node = SimNode::start(INSTANCES).await;
        nodes
            .push(node.map_err(|error| BenchError::Start { what: "a node".into(), why: error.to_string() })?);
    }
    let urls: Vec<&str> = nodes.iter().map(|node| node.url.as_str()).collect();
    for repeat in 1..=options.repeats {
        tell(&format!("a master in front of simulated nodes, {repeat} of {}", options.repeats));
        let master = Arc::new(Farm::master(&options.webgym, &urls).await?);
        let small = carry(&master, Call::Small, options.seconds / 2.0).await?;
        let (higher, neither) = (Better::Higher, Better::Neither);
        report.add("master: small requests a second of its CPU", "1/s", higher, small.calls / small.cpu);
        report.add("master: small requests a second here", "1/s", neither, small.calls / small.seconds);
        let large = carry(&master, Call::Picture, options.seconds / 2.0).await?;
        let gigabytes = large.bytes / 1e9;
        report.add("master: GB of pictures a second of its CPU", "GB/s", higher, gigabytes / large.cpu);
        report.add("master: GB of pictures a second here", "GB/s", neither, gigabytes / large.seconds);
        if let Ok(master) = Arc::try_unwrap(master) {
            master.stop().await?;
        }
    }
    report.aim("master: small requests a second of its CPU", 15_000.0);
    report.aim("master: GB of pictures a second of its CPU", 1.5);
    Ok(())
}

async fn carry(master: &Arc<Farm>, call: Call, seconds: f64) -> Result<Carried, BenchError> {
    let counts = Arc::new(Counts::default());
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (master, counts) = (Arc::clone(master), Arc::clone(&counts));
        let lease = master.get().await?;
        callers.spawn(async move {
            while !counts.stop.load(Ordering::Relaxed) {
                let bytes = ask(&master, &lease, call).await?;
                counts.calls.fetch_add(1, Ordering::Relaxed);
                counts.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            master.reset(&lease).await
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let seen = || (counts.calls.load(Ordering::Relaxed) as f64, counts.bytes.load(Ordering::Relaxed) as f64);
    let (before, cpu, begun) = (seen(), Tree::of(master.pid).cpu().total(), Instant::now());
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let (after, cpu) = (seen(), Tree::of(master.pid).cpu().total() - cpu);
    let seconds = begun.elapsed().as_secs_f64();
    counts.stop.store(true, Ordering::Relaxed);
    while let Some(ended) = callers.join_next().await {
        ended.map_err(|error| BenchError::Farm(error.to_string()))??;
    }
    Ok(Carried { calls: after.0 - before.0, bytes: after.1 - before.1, cpu: cpu.max(0.01), seconds })
}

async fn ask(master: &Farm, lease: &Lease, call: Call) -> Result<u64, BenchError> {
    let failed = |error: ClientError| BenchError::Farm(error.to_string());
    let deadline = Deadline::after(LIMIT);
    match call {
        Call::Small => master.client.metadata(lease, deadline).await.map(|_| 0).map_err(failed),
        Call::Picture => {
            let picture = master.client.screenshot(lease, InteractionMode::Coordinates, deadline).await;
            picture.map(|picture| picture.len() as u64).map_err(failed)
        }
    }
}
