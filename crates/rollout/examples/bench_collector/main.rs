//! Measures the cost of the collector: thousands of concurrent episodes against a simulated farm and policy in another
//! process, with latency and failures. Prints CPU time, memory per episode, bytes on disk per step and steps per second.
//!
//!     cargo run --release -p webgym-rollout --example bench_collector -- [EPISODES] [ROUNDS] [STEPS]
//!     cargo run --release -p webgym-rollout --example bench_collector -- --jpeg [EPISODES] [ROUNDS] [STEPS]
//!     cargo run --release -p webgym-rollout --example bench_collector -- --small [EPISODES] [ROUNDS] [STEPS]
//!     cargo run --release -p webgym-rollout --example bench_collector -- --stream [EPISODES] [ROUNDS] [STEPS]
//!     cargo run --release -p webgym-rollout --example bench_collector -- --growth
//!
//! The second form has JPEG screenshots. The third form uses screenshots of a few pixels and servers without latency, so that
//! only the collector's own work is measured. The fourth form streams such trajectories to a consumer, and also prints the delay
//! of their delivery. The last form collects 10, 100 … 100,000 such tasks of one step and prints the cost per task.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark stops at the first error")]

mod consumer;
mod disk_usage;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use client::{
    chat::{Images, ModelClient, ModelOptions},
    farm::{FarmClient, FarmClientOptions},
    http::RetryPolicy,
};
use proto::{ImageFormat, InteractionMode, trajectory::Task};
use rollout::{
    config::{HttpPools, ModelType, PolicyConfig, PromptVersion, Split},
    episode::{EpisodeContext, Settings},
    judge::Judge,
    policy::PromptOptions,
    run::{
        self, Pause, RunLimits, StartLimit, Stop, TaskSource,
        event::{Announcer, Listener},
        leases::LeaseLog,
        permits::RequestPermits,
        state::{RunState, Totals},
    },
};
use store::{IterationId, Journal, RunMetadata, RunRecord, SavePath};
use stream::{EndReason, Stream, StreamListener, StreamOptions, StreamedRun};
use testkit::{
    sim_farm::{Fault, SimFarm, SimFarmOptions},
    sim_model::{ModelReply, SimModel},
};

use tokio_util::sync::CancellationToken;

use consumer::FinishTimes;
use disk_usage::DiskUsage;

const SERVERS: &str = "--servers";
const GROWTH: &str = "--growth";
const JPEG: &str = "--jpeg";
const SMALL: &str = "--small";
const STREAM: &str = "--stream";
const MIB: f64 = 1_048_576.0;
const SIZES: [usize; 5] = [10, 100, 1000, 10_000, 100_000];

/// The number of episodes, and the behaviour of the simulated servers.
#[derive(Clone, Copy)]
struct Load {
    episodes: usize,
    rounds: usize,
    steps: usize,
    farm_millis: usize,
    policy_millis: usize,
    /// Whether screenshots have a realistic size instead of a few pixels.
    real_size: bool,
    format: ImageFormat,
    /// Whether some requests fail.
    faults: bool,
    /// Whether a consumer takes the trajectories while the run goes on.
    streams: bool,
}

impl Load {
    /// A realistic load: a busy farm and a slow model.
    fn busy(episodes: usize, rounds: usize, steps: usize) -> Self {
        let (farm_millis, policy_millis) = (400, 2000);
        let (real_size, format, faults, streams) = (true, ImageFormat::Png, true, false);
        Self { episodes, rounds, steps, farm_millis, policy_millis, real_size, format, faults, streams }
    }

    /// Only the collector's own work: tiny screenshots, almost no latency, no failures.
    fn small(episodes: usize, rounds: usize, steps: usize) -> Self {
        let (farm_millis, policy_millis) = (5, 5);
        let (real_size, format, faults, streams) = (false, ImageFormat::Png, false, false);
        Self { episodes, rounds, steps, farm_millis, policy_millis, real_size, format, faults, streams }
    }

    /// Tasks of a single step.
    fn single_step(tasks: usize) -> Self {
        let episodes = tasks.min(200);
        Self::small(episodes, tasks / episodes, 1)
    }

    fn to_arguments(self) -> Vec<String> {
        let flag = usize::from;
        [
            self.episodes,
            self.rounds,
            self.steps,
            self.farm_millis,
            self.policy_millis,
            flag(self.real_size),
            flag(self.faults),
        ]
        .map(|number| number.to_string())
        .to_vec()
    }

    fn from_arguments(arguments: &[String]) -> Self {
        let number = |index: usize| arguments[index].parse::<usize>().expect("a whole number");
        Self {
            episodes: number(0),
            rounds: number(1),
            steps: number(2),
            farm_millis: number(3),
            policy_millis: number(4),
            real_size: number(5) == 1,
            faults: number(6) == 1,
            format: ImageFormat::Png,
            streams: false,
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| {
        arguments.get(index).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match arguments.first().map(String::as_str) {
        Some(SERVERS) => runtime.block_on(serve(Load::from_arguments(&arguments[1..]))),
        Some(GROWTH) => {
            println!(
                "| tasks | seconds | CPU ms per task | growth of resident memory in MiB |\n|---|---|---|---|"
            );
            for tasks in SIZES {
                let cost = runtime.block_on(measure(Load::single_step(tasks)));
                let each = cost.cpu * 1000.0 / tasks as f64;
                println!("| {tasks} | {:.1} | {each:.2} | {:.0} |", cost.seconds, cost.grown / MIB);
            }
        }
        Some(STREAM) => runtime.block_on(async {
            let load = Load { streams: true, ..Load::small(number(1, 200), number(2, 10), number(3, 20)) };
            print_cost(load, &measure(load).await);
        }),
        Some(JPEG) => runtime.block_on(async {
            let load = Load::busy(number(1, 5000), number(2, 2), number(3, 8));
            let load = Load { format: ImageFormat::Jpeg, ..load };
            print_cost(load, &measure(load).await);
        }),
        Some(SMALL) => runtime.block_on(async {
            let load = Load::small(number(1, 200), number(2, 10), number(3, 20));
            print_cost(load, &measure(load).await);
        }),
        _ => runtime.block_on(async {
            let load = Load::busy(number(0, 5000), number(1, 2), number(2, 8));
            print_cost(load, &measure(load).await);
        }),
    }
}

/// Runs the simulated servers: a farm with one instance per episode, and a policy that answers at the last step.
async fn serve(load: Load) {
    let script = move |call: &testkit::sim_farm::Call| match call.total % 211 {
        _ if !load.faults => Fault::None,
        0 if call.path == "/step" => Fault::InstanceLost,
        1 if call.path == "/step" => Fault::CommandFailed,
        2 if call.path == "/observe" => Fault::NodeUnreachable,
        _ => Fault::None,
    };
    let options = SimFarmOptions {
        capacity: load.episodes,
        latency: Duration::from_millis(load.farm_millis as u64),
        real_size: load.real_size,
        record: false,
        ..SimFarmOptions::default()
    };
    let farm = SimFarm::start(options.with_script(script)).await;
    let think =
        "I look at the page, compare what it shows with the task, and go on with the next link. ".repeat(6);
    let policy = SimModel::start_with(
        Duration::from_millis(load.policy_millis as u64),
        false,
        Arc::new(move |question| match question.number % 97 {
            _ if question.step() >= load.steps && !load.faults => ModelReply::answer("42"),
            0 => ModelReply::Status(503, "busy".into()),
            1 => ModelReply::RateLimited(Some(0.5)),
            _ if question.step() >= load.steps => ModelReply::answer("42"),
            _ => match ModelReply::click(500, 500) {
                ModelReply::Reply(call) => {
                    ModelReply::Reply(format!("Memory: {think}\nProgress: {think}\n{call}"))
                }
                other => other,
            },
        }),
    )
    .await;
    println!("{} {}", farm.url(), policy.url());
    // Ends when the parent process closes standard input.
    let _ = tokio::task::spawn_blocking(|| {
        std::io::stdin().lines().for_each(|address| consumer::consume(&address.unwrap()));
    })
    .await;
}

struct Servers {
    child: Child,
    farm: String,
    policy: String,
}

impl Servers {
    fn start(load: Load) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(SERVERS)
            .args(load.to_arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = read_line(&mut child);
        let (farm, policy) = line.trim().split_once(' ').expect("two addresses");
        Self { farm: farm.to_owned(), policy: policy.to_owned(), child }
    }
}

fn read_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The measured cost of a load.
struct Cost {
    seconds: f64,
    cpu: f64,
    before: f64,
    /// Growth of the resident memory in bytes.
    grown: f64,
    totals: Totals,
    /// Number of steps and resident bytes over time.
    samples: Vec<(u64, f64)>,
    /// From durable to delivered, sorted.
    delays: Vec<Duration>,
    disk: DiskUsage,
}

/// Starts the stream of the run and a consumer beside the simulated servers.
async fn start_stream(
    servers: &mut Servers,
    journal: &Journal,
    context: &EpisodeContext,
    total: usize,
) -> Stream {
    let options = StreamOptions { address: ([127, 0, 0, 1], 0).into(), token: None };
    let listener = StreamListener::bind(options).await.unwrap();
    let address = listener.address();
    let stream = listener.start(StreamedRun {
        journal: journal.clone(),
        id: IterationId::new(store::Split::Train, 0),
        save_path: SavePath::new(&context.settings.save_path),
        group_size: 1,
        total,
        pause: context.pause.clone(),
        starts: StartLimit::none(),
    });
    writeln!(servers.child.stdin.as_mut().unwrap(), "{address}").unwrap();
    stream.unwrap()
}

async fn measure(load: Load) -> Cost {
    let mut servers = Servers::start(load);
    let folder = tempfile::tempdir().unwrap();
    let total = load.episodes * load.rounds;
    let state = Arc::new(RunState::new(0..total));
    let journal = journal(folder.path(), total);
    let finish_times = Arc::new(FinishTimes::default());
    let listeners: Vec<Arc<dyn Listener>> = vec![Arc::clone(&state) as _, Arc::clone(&finish_times) as _];
    let context = Arc::new(episode_context(&servers, folder.path(), listeners, journal.clone(), load));
    let limits = RunLimits {
        episodes: load.episodes,
        task_timeout: Duration::from_hours(1),
        completion_threshold: 1.0,
        completion_grace: Duration::from_mins(1),
        max_infra_retries: 5,
        unjudged: 256,
        starts: StartLimit::none(),
    };
    let stream =
        if load.streams { Some(start_stream(&mut servers, &journal, &context, total).await) } else { None };
    let (before, cpu_before, since) = (memory(), cpu(), Instant::now());
    let samples = Arc::new(Mutex::new(Vec::new()));
    let sampler = tokio::spawn(sample(Arc::clone(&state), Arc::clone(&samples)));
    let tasks = (0..total).map(|index| task(index, load.steps)).collect();
    let collected =
        run::collect(context, Judge::Reference, limits, TaskSource::Fixed { tasks, total }, Stop::default())
            .await
            .unwrap();
    journal.close().await.unwrap();
    let mut delays = Vec::new();
    if let Some(stream) = stream {
        stream.finish(EndReason::Finished, Duration::from_mins(1), &CancellationToken::new()).await;
        delays = finish_times.delays(&read_line(&mut servers.child));
        assert_eq!(delays.len(), total, "every trajectory is delivered");
    }
    let (seconds, cpu, grown) = (since.elapsed().as_secs_f64(), cpu() - cpu_before, memory() - before);
    sampler.abort();
    assert_eq!(collected.unfinished, 0);
    let samples = std::mem::take(&mut *samples.lock().unwrap());
    let disk = DiskUsage::of(folder.path());
    Cost { seconds, cpu, before, grown, totals: state.totals(), samples, delays, disk }
}

fn print_cost(load: Load, cost: &Cost) {
    let (Cost { totals, samples, before, .. }, episodes) = (cost, load.episodes);
    let peak = samples.iter().map(|(_, bytes)| *bytes).fold(*before, f64::max);
    println!(
        "concurrent episodes       {episodes}, {} in total, {} retried",
        episodes * load.rounds,
        totals.retried
    );
    println!("outcomes                  {:?}", totals.outcomes);
    println!(
        "steps                     {} in {:.0} s: {:.0} per second",
        totals.steps,
        cost.seconds,
        totals.steps as f64 / cost.seconds
    );
    println!("CPU of the collector      {:.2} ms per step", cost.cpu * 1000.0 / totals.steps as f64);
    let trajectories = (load.episodes * load.rounds) as f64;
    println!("                          {:.2} ms per trajectory", cost.cpu * 1000.0 / trajectories);
    if !cost.delays.is_empty() {
        let at = |share: f64| {
            cost.delays[((cost.delays.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0
        };
        let (median, high, max) = (at(0.5), at(0.95), at(1.0));
        println!(
            "delivered after           {median:.1} ms (median), {high:.1} ms (95 %), {max:.1} ms (most)"
        );
    }
    let steps = totals.steps as f64;
    let kib = |bytes: f64| bytes / 1024.0 / steps;
    let DiskUsage { screenshots, journal, iteration_file, cpu } = &cost.disk;
    println!(
        "on disk                   {:.2} KiB per step: screenshots {:.2}, .pt {:.2} (journal before: {:.2})",
        kib(screenshots + iteration_file),
        kib(*screenshots),
        kib(*iteration_file),
        kib(*journal)
    );
    println!("CPU of writing the .pt    {:.3} ms per step", cpu * 1000.0 / steps);
    println!("memory of the collector   {:.0} KiB per episode", (peak - before) / 1024.0 / episodes as f64);
    let done = |share: f64| samples.iter().find(|(steps, _)| *steps as f64 >= share * totals.steps as f64);
    let flat: Vec<String> = [0.25, 0.5, 0.75, 0.95]
        .iter()
        .filter_map(|share| {
            done(*share).map(|(_, bytes)| format!("{:.0} MiB at {:.0} %", bytes / MIB, share * 100.0))
        })
        .collect();
    println!("resident                  {:.0} MiB before, {}", before / MIB, flat.join(", "));
}

async fn sample(state: Arc<RunState>, samples: Arc<Mutex<Vec<(u64, f64)>>>) {
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        samples.lock().unwrap().push((state.totals().steps, memory()));
    }
}

fn task(index: usize, steps: usize) -> Task {
    Task {
        task_name: format!("find the cheapest lamp number {index} that can be had by Friday"),
        domain: "shopping".into(),
        subdomain: "lamps".into(),
        website: format!("http://shop{}.test/", index % 500),
        difficulty: 5,
        evaluator_reference: Vec::new(),
        reference_answer: Some("42".into()),
        attempt_level: 0,
        task_id: None,
        max_steps: i64::try_from(steps).expect("a small number") + 5,
        trajectory_index: i64::try_from(index).expect("a small number"),
        extra: serde_json::Map::new(),
    }
}

fn journal(root: &Path, total: usize) -> Journal {
    let save_path = SavePath::new(root);
    save_path.create_directories(store::Split::Train).unwrap();
    let run = RunRecord {
        split: store::Split::Train,
        iteration: 0,
        rank: None,
        seed: 1,
        config_digest: String::new(),
        tasks: total as u64,
        metadata: RunMetadata::default(),
    };
    Journal::create(&save_path.journal(IterationId::new(store::Split::Train, 0)), &run).unwrap()
}

fn episode_context(
    servers: &Servers,
    root: &Path,
    listeners: Vec<Arc<dyn Listener>>,
    journal: Journal,
    load: Load,
) -> EpisodeContext {
    let episodes = load.episodes;
    let retry = RetryPolicy::default();
    let timeout = Duration::from_mins(2);
    let farm = FarmClientOptions { operation_timeout: timeout, retry, ..FarmClientOptions::default() };
    let retry = RetryPolicy::default();
    let policy = ModelOptions {
        sessions: episodes,
        attempt_timeout: timeout,
        retry,
        images: Images::File,
        ..ModelOptions::default()
    };
    // Each episode sends a request of 0.4 s every 2.4 s, so a sixth of the episodes have one in flight.
    let calls = episodes.div_ceil(6);
    let pools = HttpPools {
        metadata: calls,
        navigate: calls,
        allocate: calls,
        release: calls,
        screenshot: calls,
        ac_tree: calls,
        page_metadata: calls,
        execute: calls,
    };
    let save_path = SavePath::new(root);
    let policy = ModelClient::vllm(&servers.policy, policy).unwrap();
    let announcer = Announcer::new(listeners);
    EpisodeContext {
        group_prefixes: None,
        pause: Pause::new(policy.clone(), announcer.clone()),
        policy_version: rollout::run::PolicyVersion::default(),
        farm: FarmClient::new(&servers.farm, "key", farm).unwrap(),
        policy,
        permits: RequestPermits::new(&pools, Duration::from_mins(40)),
        announcer,
        leases: Some(LeaseLog::open(root).unwrap()),
        journal,
        sessions: rollout::session_options::SessionSource::default(),
        settings: Settings {
            prompts: Arc::default(),
            prompting: PromptOptions {
                mode: InteractionMode::Coordinates,
                model_type: ModelType::Instruct,
                version: PromptVersion::Complete,
                include_ac_tree: false,
                window: rollout::policy::HISTORY_WINDOW,
                dialect: None,
            },
            page_text_lines: 0,
            screenshot_format: load.format,
            model: "sim".into(),
            policy: PolicyConfig::default(),
            split: Split::Train,
            groups: None,
            lifetime_mins: 60,
            operation_timeout: timeout,
            save_path: root.to_owned(),
            images: save_path.images(),
            navigation_errors: save_path.navigation_errors(),
        },
    }
}

/// Returns the resident memory of this process in bytes.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() * 1024.0
}

/// Returns the CPU time of all threads of this process in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    // The kernel reports ticks of 10 ms to programs, regardless of its internal clock.
    ticks / 100.0
}
