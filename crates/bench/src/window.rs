//! Closed loops of workers, one loop a driver, that take turns of a few seconds: steps, latencies, CPU and memory of the tree that
//! serves them. On a shared machine a minute is not like the next; two turns that follow each other are.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use practice::Sites;
use proto::{Command, InteractionMode};
use tokio::task::JoinSet;

use crate::{
    BenchError,
    bare::Bare,
    crowd,
    farm::{Dialect, Farm},
    gate::Gate,
    load,
    meter::{Kind, Split, Tree},
};

/// Who carries out the steps.
#[derive(Clone)]
pub(crate) enum Driver {
    Bare(Arc<Bare>),
    Farm(Arc<Farm>, Dialect, InteractionMode),
}

impl Driver {
    /// The farm's process; bare Chromium is driven from this one.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Bare(_) => None,
            Self::Farm(farm, ..) => Some(farm.pid),
        }
    }

    /// Ends what it drives, once nobody else does.
    pub(crate) async fn stop(self) -> Result<(), BenchError> {
        match self {
            Self::Bare(bare) => {
                if let Ok(bare) = Arc::try_unwrap(bare) {
                    bare.close().await;
                }
                Ok(())
            }
            Self::Farm(farm, ..) => crowd::stop(farm).await,
        }
    }
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

/// Workers on one driver that run episodes one after the other, whenever they are let.
pub(crate) struct Crew {
    running: JoinSet<Result<(), BenchError>>,
    log: Arc<Log>,
    gate: Arc<Gate>,
    tree: Tree,
    seconds: f64,
    cpu: Split,
    memory: Split,
}

impl Crew {
    /// `tree` is what serves them, and is metered.
    pub(crate) fn new(driver: &Driver, workers: usize, tree: Tree, sites: &Arc<Sites>) -> Self {
        let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
        let mut running = JoinSet::new();
        for worker in 0..workers {
            let (driver, log, gate, sites) =
                (driver.clone(), Arc::clone(&log), Arc::clone(&gate), Arc::clone(sites));
            running.spawn(async move { work(&driver, worker, &sites, &log, &gate).await });
        }
        Self { running, log, gate, tree, seconds: 0.0, cpu: Split::default(), memory: Split::default() }
    }

    /// Lets them work for so long without counting.
    pub(crate) async fn warm_up(&mut self, seconds: f64) -> Result<(), BenchError> {
        self.slice(seconds).await?;
        *self.log.times() = Times::default();
        (self.seconds, self.cpu) = (0.0, Split::default());
        Ok(())
    }

    /// Lets them work for so long, and until each has ended what it was at.
    pub(crate) async fn slice(&mut self, seconds: f64) -> Result<(), BenchError> {
        let (begun, cpu) = (Instant::now(), self.tree.cpu());
        self.gate.open();
        let half = Duration::from_secs_f64(seconds / 2.0);
        self.wait(tokio::time::sleep(half)).await?;
        self.memory = self.tree.memory();
        self.wait(tokio::time::sleep(half)).await?;
        self.gate.close();
        let gate = Arc::clone(&self.gate);
        self.wait(async move { gate.empty().await }).await?;
        self.seconds += begun.elapsed().as_secs_f64();
        self.cpu = self.cpu.and(self.tree.cpu().since(cpu));
        Ok(())
    }

    /// A worker that ends has met an error: nobody told it to.
    async fn wait(&mut self, until: impl Future<Output = ()>) -> Result<(), BenchError> {
        tokio::select! {
            () = until => Ok(()),
            Some(ended) = self.running.join_next() => match ended {
                Ok(Err(error)) => Err(error),
                Ok(Ok(())) => Err(BenchError::Farm("a worker ended early".into())),
                Err(error) => Err(BenchError::Farm(error.to_string())),
            },
        }
    }

    /// Sends them home.
    pub(crate) async fn finish(mut self) -> Window {
        self.running.shutdown().await;
        let times = self.log.times().clone();
        Window { seconds: self.seconds, times, cpu: self.cpu, memory: self.memory }
    }
}

async fn work(
    driver: &Driver,
    worker: usize,
    sites: &Sites,
    log: &Log,
    gate: &Gate,
) -> Result<(), BenchError> {
    let mut given_back: Option<Instant> = None;
    let mut round = worker;
    loop {
        let commands = load::episode(sites, round);
        // Workers that start together must not stay in step.
        let commands = if given_back.is_none() { &commands[worker % load::STEPS..] } else { &commands[..] };
        given_back = Some(match driver {
            Driver::Bare(bare) => bare_episode(bare, commands, (log, gate), given_back).await?,
            Driver::Farm(farm, dialect, mode) => {
                farm_episode(farm, (*dialect, *mode), commands, (log, gate), given_back).await?
            }
        });
        round += 1;
    }
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
    (log, gate): (&Log, &Gate),
    given_back: Option<Instant>,
) -> Result<Instant, BenchError> {
    let inside = gate.enter().await;
    let begun = Instant::now();
    let page = bare.page().await?;
    leased(log, begun, given_back);
    drop(inside);
    for command in commands {
        let _inside = gate.enter().await;
        let begun = Instant::now();
        let bytes = page.step(command).await?;
        stepped(log, begun, bytes);
    }
    let _inside = gate.enter().await;
    let begun = Instant::now();
    page.dispose().await?;
    log.times().reset.push(since(begun));
    Ok(Instant::now())
}

async fn farm_episode(
    farm: &Farm,
    (dialect, mode): (Dialect, InteractionMode),
    commands: &[Command],
    (log, gate): (&Log, &Gate),
    given_back: Option<Instant>,
) -> Result<Instant, BenchError> {
    let inside = gate.enter().await;
    let begun = Instant::now();
    let lease = farm.get().await?;
    leased(log, begun, given_back);
    drop(inside);
    for command in commands {
        let _inside = gate.enter().await;
        let begun = Instant::now();
        let bytes = farm.step(&lease, command, dialect, mode).await?;
        stepped(log, begun, bytes);
    }
    let _inside = gate.enter().await;
    let begun = Instant::now();
    farm.reset(&lease).await?;
    log.times().reset.push(since(begun));
    Ok(Instant::now())
}
