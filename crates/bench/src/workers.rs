//! Groups of workers that run episodes in a closed loop, one group per driver. The groups take turns of a few seconds,
//! because conditions on a shared machine change over minutes. Measures steps, latencies, CPU and memory.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use practice::Sites;
use proto::{Command, InteractionMode};
use tokio::task::JoinSet;

use crate::{
    BenchError,
    bare::BareBrowser,
    farm_process::{FarmProcess, StepCalls},
    gate::Gate,
    process_tree::{Kind, PerKind, ProcessTree},
    scaling, workload,
};

/// What runs the steps.
#[derive(Clone)]
pub(crate) enum Driver {
    Bare(Arc<BareBrowser>),
    Farm(Arc<FarmProcess>, StepCalls, InteractionMode),
}

impl Driver {
    /// The process of the farm, or the process group of bare Chromium.
    fn process(&self) -> u32 {
        match self {
            Self::Bare(bare) => bare.process_group(),
            Self::Farm(farm, ..) => farm.pid,
        }
    }

    /// The processes whose CPU and memory are measured. Bare Chromium is driven by this process, which counts with it; what
    /// `all` other drivers run does not.
    pub(crate) fn process_tree<'a>(&self, all: impl Iterator<Item = &'a Self>) -> ProcessTree {
        match self {
            Self::Bare(_) => {
                let others: Vec<u32> =
                    all.map(Self::process).filter(|process| *process != self.process()).collect();
                ProcessTree::current(&others)
            }
            Self::Farm(farm, ..) => ProcessTree::of(farm.pid),
        }
    }

    /// Stops the browser or farm if this is its last reference.
    pub(crate) async fn stop(self) -> Result<(), BenchError> {
        match self {
            Self::Bare(bare) => {
                if let Ok(bare) = Arc::try_unwrap(bare) {
                    bare.close().await;
                }
                Ok(())
            }
            Self::Farm(farm, ..) => scaling::stop(farm).await,
        }
    }
}

/// Latencies in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) step: Vec<f64>,
    /// Acquiring a lease, or creating a context.
    pub(crate) acquire: Vec<f64>,
    /// Releasing a lease, or disposing of a context.
    pub(crate) release: Vec<f64>,
    /// From the end of the release until the same worker has the next lease.
    pub(crate) turnaround: Vec<f64>,
    /// Total size of all screenshots.
    pub(crate) bytes: usize,
}

/// The measurements of one group of workers.
pub(crate) struct Measurement {
    pub(crate) seconds: f64,
    pub(crate) latencies: Latencies,
    pub(crate) cpu: PerKind,
    pub(crate) memory: PerKind,
}

impl Measurement {
    pub(crate) fn steps_per_second(&self) -> f64 {
        self.latencies.step.len() as f64 / self.seconds
    }

    pub(crate) fn cpu_per_step(&self) -> f64 {
        self.cpu.total() / self.latencies.step.len().max(1) as f64
    }

    pub(crate) fn cpu_per_step_of(&self, kind: Kind) -> f64 {
        self.cpu.of(kind) / self.latencies.step.len().max(1) as f64
    }
}

#[derive(Default)]
struct LatencyLog(Mutex<Latencies>);

impl LatencyLog {
    fn lock(&self) -> MutexGuard<'_, Latencies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn milliseconds_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

/// Workers on one driver. They run episodes one after the other while the gate is open.
pub(crate) struct WorkerGroup {
    running: JoinSet<Result<(), BenchError>>,
    log: Arc<LatencyLog>,
    gate: Arc<Gate>,
    tree: ProcessTree,
    seconds: f64,
    cpu: PerKind,
    memory: PerKind,
}

impl WorkerGroup {
    /// Starts the workers. `tree` is the process tree whose CPU and memory are measured.
    pub(crate) fn new(driver: &Driver, workers: usize, tree: ProcessTree, sites: &Arc<Sites>) -> Self {
        let (log, gate) = (Arc::new(LatencyLog::default()), Arc::new(Gate::default()));
        let mut running = JoinSet::new();
        for worker in 0..workers {
            let (driver, log, gate, sites) =
                (driver.clone(), Arc::clone(&log), Arc::clone(&gate), Arc::clone(sites));
            running.spawn(async move { run_worker(&driver, worker, &sites, &log, &gate).await });
        }
        Self { running, log, gate, tree, seconds: 0.0, cpu: PerKind::default(), memory: PerKind::default() }
    }

    /// Runs the workers for some seconds without counting.
    pub(crate) async fn warm_up(&mut self, seconds: f64) -> Result<(), BenchError> {
        self.run_turn(seconds).await?;
        *self.log.lock() = Latencies::default();
        (self.seconds, self.cpu) = (0.0, PerKind::default());
        Ok(())
    }

    /// Runs the workers for some seconds and until each has ended its step.
    pub(crate) async fn run_turn(&mut self, seconds: f64) -> Result<(), BenchError> {
        let (start, cpu) = (Instant::now(), self.tree.cpu());
        self.gate.open();
        let half = Duration::from_secs_f64(seconds / 2.0);
        self.wait(tokio::time::sleep(half)).await?;
        self.memory = self.tree.memory();
        self.wait(tokio::time::sleep(half)).await?;
        self.gate.close();
        let gate = Arc::clone(&self.gate);
        self.wait(async move { gate.wait_until_idle().await }).await?;
        self.seconds += start.elapsed().as_secs_f64();
        self.cpu = self.cpu.plus(self.tree.cpu().since(cpu));
        Ok(())
    }

    /// Waits for `until`. A worker runs until it is aborted, so one that ends has failed.
    async fn wait(&mut self, until: impl Future<Output = ()>) -> Result<(), BenchError> {
        tokio::select! {
            () = until => Ok(()),
            Some(result) = self.running.join_next() => match result {
                Ok(Err(error)) => Err(error),
                Ok(Ok(())) => Err(BenchError::Farm("a worker ended early".into())),
                Err(error) => Err(BenchError::Farm(error.to_string())),
            },
        }
    }

    /// Aborts the workers and returns the measurements.
    pub(crate) async fn finish(mut self) -> Measurement {
        self.running.shutdown().await;
        let latencies = self.log.lock().clone();
        Measurement { seconds: self.seconds, latencies, cpu: self.cpu, memory: self.memory }
    }
}

async fn run_worker(
    driver: &Driver,
    worker: usize,
    sites: &Sites,
    log: &LatencyLog,
    gate: &Gate,
) -> Result<(), BenchError> {
    let mut released: Option<Instant> = None;
    let mut round = worker;
    loop {
        let commands = workload::episode(sites, round);
        let first = if released.is_none() { workload::first_step(&commands, worker) } else { 0 };
        let commands = &commands[first..];
        released = Some(match driver {
            Driver::Bare(bare) => bare_episode(bare, commands, (log, gate), released).await?,
            Driver::Farm(farm, calls, mode) => {
                farm_episode(farm, (*calls, *mode), commands, (log, gate), released).await?
            }
        });
        round += 1;
    }
}

fn record_lease(log: &LatencyLog, start: Instant, released: Option<Instant>) {
    let mut latencies = log.lock();
    latencies.acquire.push(milliseconds_since(start));
    latencies.turnaround.extend(released.map(milliseconds_since));
}

fn record_step(log: &LatencyLog, start: Instant, bytes: usize) {
    let mut latencies = log.lock();
    latencies.step.push(milliseconds_since(start));
    latencies.bytes += bytes;
}

async fn bare_episode(
    bare: &BareBrowser,
    commands: &[Command],
    (log, gate): (&LatencyLog, &Gate),
    released: Option<Instant>,
) -> Result<Instant, BenchError> {
    let active = gate.enter().await;
    let start = Instant::now();
    let page = bare.new_page().await?;
    record_lease(log, start, released);
    drop(active);
    for command in commands {
        let _active = gate.enter().await;
        let start = Instant::now();
        let bytes = page.step(command).await?;
        record_step(log, start, bytes);
    }
    let _active = gate.enter().await;
    let start = Instant::now();
    page.dispose().await?;
    log.lock().release.push(milliseconds_since(start));
    Ok(Instant::now())
}

async fn farm_episode(
    farm: &FarmProcess,
    (calls, mode): (StepCalls, InteractionMode),
    commands: &[Command],
    (log, gate): (&LatencyLog, &Gate),
    released: Option<Instant>,
) -> Result<Instant, BenchError> {
    let active = gate.enter().await;
    let start = Instant::now();
    let lease = farm.acquire().await?;
    record_lease(log, start, released);
    drop(active);
    for command in commands {
        let _active = gate.enter().await;
        let start = Instant::now();
        let bytes = farm.step(&lease, command, calls, mode).await?;
        record_step(log, start, bytes);
    }
    let _active = gate.enter().await;
    let start = Instant::now();
    farm.release(&lease).await?;
    log.lock().release.push(milliseconds_since(start));
    Ok(Instant::now())
}
