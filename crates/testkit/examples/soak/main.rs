//! Soak test: runs two thousand short episodes on real browsers and samples memory, descriptors, processes, temporary
//! files and Redis keys from outside. After the first quarter they must stay flat: a linear fit through the samples
//! gives the growth of each. Prints a table, saves everything as JSON and exits with status 1 if something grew.
//!
//!     cargo run --release -p webgym-testkit --example soak -- --webgym target/release/webgym --episodes 2000
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step fails the test")]

mod meters;
#[path = "../chaos/service.rs"]
#[allow(dead_code, reason = "only the chaos test uses all of it")]
mod service;

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use practice::Sites;
use serde_json::{Value, json};
use testkit::{
    arguments::{Arguments, exit},
    hosts, poll_until,
    sim_model::{ModelReply, ModelRequest, SimModel},
};

use meters::{Meters, Sample, fit_line, tolerance};
use service::{Service, ServiceSpec};

const FOLDER: &str = "/tmp/webgym-soak";
const PAGES: &[&str] = &["/course/buttons", "/course/inputs", "/jobs/companies", "/shop/cart", "/wiki/all"];
const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);
const START_TIMEOUT: Duration = Duration::from_secs(90);
const INSTANCES: usize = 4;
const MASTER_PORT: u16 = 7000;
const REDIS_PORT: u16 = 6379;

struct Options {
    webgym: PathBuf,
    episodes: usize,
    limit: Duration,
    out: PathBuf,
}

impl Options {
    fn from_env() -> Self {
        let given = Arguments::from_env(&["--episodes", "--minutes", "--webgym", "--out"]);
        Self {
            episodes: given.number("--episodes").unwrap_or(2000) as usize,
            limit: Duration::from_secs(given.number("--minutes").unwrap_or(20) * 60),
            webgym: given.program("--webgym", "target/release/webgym"),
            out: given.folder("--out", "target/soak"),
        }
    }
}

fn act(request: &ModelRequest) -> ModelReply {
    match request.step() {
        1 => ModelReply::call("computer_use", &json!({"action": "scroll", "direction": "down"})),
        _ => ModelReply::answer("42"),
    }
}

fn write_tasks(folder: &std::path::Path, sites: &Sites, count: usize) {
    let task = |id: usize| {
        json!({
            "task_id": id, "task_name": format!("look around, part {id}"), "website": sites.url(PAGES[id % PAGES.len()]),
            "domain": "d", "subdomain": "s", "difficulty": 1, "evaluator_reference": ["seen"], "definite_answer": "42",
        })
        .to_string()
    };
    let lines: Vec<String> = (0..count).map(task).collect();
    std::fs::write(folder.join("tasks.jsonl"), lines.join("\n")).expect("a writable /tmp");
}

fn start(folder: &std::path::Path, name: &'static str, command: &str) -> Service {
    let command = command.split(' ').map(str::to_owned).collect();
    Service::start(ServiceSpec { name, command, variables: Vec::new(), folder: folder.to_owned() })
}

fn main() -> ExitCode {
    let options = Options::from_env();
    if let Err(reason) = hosts::enter_isolated_machine(&[&options.webgym, &options.out]) {
        eprintln!("NOT TESTED: this machine does not allow namespaces: {reason}");
        return ExitCode::FAILURE;
    }
    tokio::runtime::Runtime::new().expect("a runtime").block_on(soak(&options))
}

async fn soak(options: &Options) -> ExitCode {
    let folder = PathBuf::from(FOLDER);
    if let Err(error) = std::fs::create_dir(&folder) {
        exit(&format!("cannot create {FOLDER}, which is reserved for this test: {error}"));
    }
    let here: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let sites = Sites::start(here).expect("the practice sites start");
    let policy = SimModel::start_at(here, Duration::ZERO, false, Arc::new(act)).await;
    write_tasks(&folder, &sites, options.episodes);
    let redis = format!("redis-server --save  --appendonly no --dir {FOLDER} --port {REDIS_PORT}");
    let mut redis = start(&folder, "redis", &redis);
    let arguments = format!(
        "-q serve {INSTANCES} --master-port {MASTER_PORT} --redis redis://127.0.0.1:{REDIS_PORT} --allow-private-network"
    );
    let mut farm = start(&folder, "farm", &format!("{} {arguments}", options.webgym.display()));
    let http = testkit::Http::new(&format!("http://127.0.0.1:{MASTER_PORT}"), Some("default_key"));
    poll_until("all instances are ready", START_TIMEOUT, async || {
        let metrics = http.try_send(hyper::Method::GET, "/metrics", &[], "", &[]).await.ok()?;
        testkit::Slots::try_parse(&metrics.text()).ok().filter(testkit::Slots::is_all_free)
    })
    .await;
    let command = format!(
        "{} -q rollout --resume save_path={FOLDER}/run data_path={FOLDER} env_config.vllm_server_url={} {RUN_OVERRIDES} \
         env_config.master_port={MASTER_PORT} env_config.server_size={INSTANCES}",
        options.webgym.display(),
        policy.url()
    );
    let begun = Instant::now();
    let mut collector = start(&folder, "collector", &command);
    let meters = Meters {
        farm: farm.pid().expect("the farm runs"),
        collector: poll_until("the collector runs", START_TIMEOUT, async || collector.pid()).await,
        redis: redis.pid().expect("Redis runs"),
        redis_port: REDIS_PORT,
        temporary: vec![
            "/tmp".into(),
            "/dev/shm".into(),
            farm.temporary.clone(),
            collector.temporary.clone(),
        ],
    };
    let mut samples: Vec<(f64, f64, Sample)> = Vec::new();
    let ended = tokio::select! {
        ended = collector.wait_for_success(options.limit) => ended,
        () = sample(&meters, &policy, begun, &mut samples) => false,
    };
    let took = begun.elapsed();
    let restarted = farm.starts() + collector.starts() > 2;
    let done = count_finished();
    for service in [&mut collector, &mut farm, &mut redis] {
        service.stop().await;
    }
    report(options, &samples, &Outcome { ended, restarted, done, took })
}

const RUN_OVERRIDES: &str = "--config-name=rollout_test env_config.test_tasks=tasks.jsonl env_config.test_tasks_rollout_size=0 \
     env_config.test_tasks_repeat_times=1 env_config.host_ip=127.0.0.1 env_config.completion_threshold=1 \
     env_config.monitor_port=null judge=reference";

/// Takes samples until cancelled. Every episode sends two requests to the policy.
async fn sample(meters: &Meters, policy: &SimModel, begun: Instant, samples: &mut Vec<(f64, f64, Sample)>) {
    loop {
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        let episodes = policy.count() as f64 / 2.0;
        let sample = meters.read();
        if sample.get("collector: memory, MiB").is_some_and(|memory| *memory > 0.0) {
            samples.push((begun.elapsed().as_secs_f64(), episodes, sample));
        }
    }
}

fn count_finished() -> usize {
    let save_path = store::SavePath::new(format!("{FOLDER}/run"));
    let all = store::iteration::summaries_of(&save_path, store::Split::Test, 0).unwrap_or_default();
    all.iter().filter(|one| one.outcome == Some(proto::trajectory::Outcome::Success)).count()
}

struct Outcome {
    ended: bool,
    restarted: bool,
    done: usize,
    took: Duration,
}

fn report(options: &Options, samples: &[(f64, f64, Sample)], outcome: &Outcome) -> ExitCode {
    let last = samples.last().map_or(0.0, |sample| sample.1);
    let late: Vec<&(f64, f64, Sample)> = samples.iter().filter(|sample| sample.1 >= last / 4.0).collect();
    let names: Vec<&'static str> =
        samples.first().map(|sample| sample.2.keys().copied().collect()).unwrap_or_default();
    let (mut rows, mut grew) = (Vec::new(), Vec::new());
    println!(
        "| what | mean | min – max | slope per 1,000 episodes | growth from 25 % to 100 % | allowed |\n|---|---|---|---|---|---|"
    );
    for name in names {
        let points: Vec<(f64, f64)> =
            late.iter().filter_map(|(_, at, sample)| Some((*at, *sample.get(name)?))).collect();
        let line = fit_line(&points);
        let allowed = tolerance(name, line.mean);
        // A value that could not be read is NaN, which is a failure.
        if line.growth.is_nan() || line.growth > allowed {
            grew.push(name);
        }
        println!(
            "| {name} | {:.1} | {:.0} – {:.0} | {:+.2} | {:+.2} | {allowed:.1} |",
            line.mean, line.min, line.max, line.per_thousand, line.growth
        );
        rows.push(json!({
            "what": name, "mean": line.mean, "least": line.min, "most": line.max,
            "per_thousand_episodes": line.per_thousand, "growth": line.growth, "allowed": allowed,
        }));
    }
    let Outcome { ended, restarted, done, took } = *outcome;
    let rate = done as f64 / took.as_secs_f64();
    println!(
        "\n{done} of {} episodes in {:.0} s ({rate:.1} a second), {} samples",
        options.episodes,
        took.as_secs_f64(),
        samples.len()
    );
    let passed = grew.is_empty() && !restarted && late.len() >= 10 && (done == options.episodes || !ended);
    let series: Vec<Value> = samples
        .iter()
        .map(|(at, episodes, sample)| json!({"at": at, "episodes": episodes, "values": sample}))
        .collect();
    let saved = json!({"passed": passed, "episodes": done, "took": took.as_secs_f64(), "lines": rows, "samples": series});
    let path = options.out.join("report.json");
    std::fs::write(&path, saved.to_string()).expect("the report can be saved");
    if restarted {
        println!("WRONG: the farm or the collector exited and was restarted");
    }
    for name in &grew {
        println!("WRONG: {name} grows");
    }
    if !ended {
        println!("the time limit was reached before all episodes were finished");
    }
    println!("{}. The report is {}", if passed { "PASSED" } else { "FAILED" }, path.display());
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
