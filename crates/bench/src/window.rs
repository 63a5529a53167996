//! A closed loop of workers on one driver, watched for a while: steps, latencies, CPU and memory of the tree that serves them.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use practice::Sites;
use proto::{Command, InteractionMode};
use tokio::task::JoinSet;

use crate::{
    BenchError,
    bare::Bare,
    farm::{Dialect, Farm},
    load,
    meter::{self, Kind, Split},
};

/// Who carries out the steps.
#[derive(Clone)]
pub(crate) enum Driver {
    Bare(Arc<Bare>),
    Farm(Arc<Farm>, Dialect, InteractionMode),
}

/// Latencies in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    pub(crate) step: Vec<f64>,
    /// Leasing, or making a context.
    pub(crate) get: Vec<f64>,
    /// The answer to giving back, or disposing of a context.
    pub(crate) reset: Vec<f64>,
    /// From that answer until the same worker holds the next one.
    pub(crate) again: Vec<f64>,
    pub(crate) bytes: usize,
}

/// What a while of load showed.
pub(crate) struct Window {
    pub(crate) seconds: f64,
    pub(crate) times: Times,
    pub(crate) cpu: Split,
    pub(crate) memory: Split,
}

impl Window {
    pub(crate) fn steps_per_second(&self) -> f64 {
        self.times.step.len() as f64 / self.seconds
    }

    pub(crate) fn cpu_a_step(&self) -> f64 {
        self.cpu.total() / self.times.step.len().max(1) as f64
    }

    pub(crate) fn cpu_a_step_of(&self, kind: Kind) -> f64 {
        self.cpu.of(kind) / self.times.step.len().max(1) as f64
    }
}

#[derive(Default)]
struct Log(Mutex<Times>);

impl Log {
    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}

/// Lets `workers` run episodes one after the other for a warm-up and then for `seconds`, which count. `root` is the tree
/// that is metered.
pub(crate) async fn watch(
    driver: &Driver,
    workers: usize,
    root: u32,
    seconds: f64,
    sites: &Arc<Sites>,
) -> Result<Window, BenchError> {
    let (log, stop) = (Arc::new(Log::default()), Arc::new(AtomicBool::new(false)));
    let mut running = JoinSet::new();
    for worker in 0..workers {
        let (driver, log, stop, sites) =
            (driver.clone(), Arc::clone(&log), Arc::clone(&stop), Arc::clone(sites));
        running.spawn(async move { work(&driver, worker, &sites, &log, &stop).await });
    }
    let warm_up = (seconds / 3.0).max(2.0);
    pause(&mut running, warm_up).await?;
    *log.times() = Times::default();
    let (begun, cpu) = (Instant::now(), meter::cpu(root));
    pause(&mut running, seconds / 2.0).await?;
    let memory = meter::memory(root);
    pause(&mut running, seconds / 2.0).await?;
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), meter::cpu(root).since(cpu));
    let times = log.times().clone();
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = running.join_next().await {
        ended.map_err(|error| BenchError::Farm(error.to_string()))??;
    }
    Ok(Window { seconds, times, cpu, memory })
}

/// Lets the workers work; one that ends before it is told to has met an error.
async fn pause(running: &mut JoinSet<Result<(), BenchError>>, seconds: f64) -> Result<(), BenchError> {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => Ok(()),
        Some(ended) = running.join_next() => match ended {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) => Err(BenchError::Farm("a worker ended early".into())),
            Err(error) => Err(BenchError::Farm(error.to_string())),
        },
    }
}

async fn work(
    driver: &Driver,
    worker: usize,
    sites: &Sites,
    log: &Log,
    stop: &AtomicBool,
) -> Result<(), BenchError> {
    let mut given_back: Option<Instant> = None;
    let mut round = worker;
    while !stop.load(Ordering::Relaxed) {
        let commands = load::episode(sites, round);
        // Workers that start together must not stay in step.
        let commands = if given_back.is_none() { &commands[worker % load::STEPS..] } else { &commands[..] };
        given_back = Some(match driver {
            Driver::Bare(bare) => bare_episode(bare, commands, log, given_back).await?,
            Driver::Farm(farm, dialect, mode) => {
                farm_episode(farm, (*dialect, *mode), commands, log, given_back).await?
            }
        });
        round += 1;
    }
    Ok(())
}

fn leased(log: &Log, begun: Instant, given_back: Option<Instant>) {
    let mut times = log.times();
    times.get.push(since(begun));
    times.again.extend(given_back.map(since));
}

fn stepped(log: &Log, begun: Instant, bytes: usize) {
    let mut times = log.times();
    times.step.push(since(begun));
    times.bytes += bytes;
}

async fn bare_episode(
    bare: &Bare,
    commands: &[Command],
    log: &Log,
    given_back: Option<Instant>,
) -> Result<Instant, BenchError> {
    let begun = Instant::now();
    let page = bare.page().await?;
    leased(log, begun, given_back);
    for command in commands {
        let begun = Instant::now();
        let bytes = page.step(command).await?;
        stepped(log, begun, bytes);
    }
    let begun = Instant::now();
    page.dispose().await?;
    log.times().reset.push(since(begun));
    Ok(Instant::now())
}

async fn farm_episode(
    farm: &Farm,
    (dialect, mode): (Dialect, InteractionMode),
    commands: &[Command],
    log: &Log,
    given_back: Option<Instant>,
) -> Result<Instant, BenchError> {
    let begun = Instant::now();
    let lease = farm.get().await?;
    leased(log, begun, given_back);
    for command in commands {
        let begun = Instant::now();
        let bytes = farm.step(&lease, command, dialect, mode).await?;
        stepped(log, begun, bytes);
    }
    let begun = Instant::now();
    farm.reset(&lease).await?;
    log.times().reset.push(since(begun));
    Ok(Instant::now())
}
