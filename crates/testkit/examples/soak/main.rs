//! Two thousand short episodes on real browsers in one run, while memory, descriptors, processes, temporary files and Redis
//! keys are sampled from outside. From a quarter of the way on they must stay flat: a straight line through the samples
//! says how much each grows. Prints a table, saves everything as JSON, ends badly if something grew.
//!
//!     cargo run --release -p webgym-testkit --example soak -- --webgym target/release/webgym --episodes 2000
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must stop")]

mod meters;
#[path = "../chaos/service.rs"]
#[allow(dead_code, reason = "faults need more of it than this")]
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
    arguments::Arguments,
    hosts, poll_until,
    sim_model::{Question, Said, SimModel},
};

use meters::{Meters, Sample, line, tolerance};
use service::{Recipe, Service};

const PAGES: &[&str] = &["/course/buttons", "/course/inputs", "/jobs/companies", "/shop/cart", "/wiki/all"];
const EVERY: Duration = Duration::from_secs(2);
const STARTING: Duration = Duration::from_secs(90);
const INSTANCES: usize = 4;
const MASTER: u16 = 7000;
const REDIS: u16 = 6379;

struct Plan {
    webgym: String,
    episodes: usize,
    limit: Duration,
    out: PathBuf,
}

impl Plan {
    fn read() -> Self {
        let given = Arguments::read(&["--episodes", "--minutes", "--webgym", "--out"]);
        Self {
            episodes: given.number("--episodes").unwrap_or(2000) as usize,
            limit: Duration::from_secs(given.number("--minutes").unwrap_or(20) * 60),
            webgym: given.path("--webgym", "target/release/webgym").display().to_string(),
            out: given.path("--out", "target/soak"),
        }
    }
}

fn act(question: &Question) -> Said {
    match question.step() {
        1 => Said::call("computer_use", &json!({"action": "scroll", "direction": "down"})),
        _ => Said::answer("42"),
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
    std::fs::write(folder.join("tasks.jsonl"), lines.join("\n")).expect("our own /tmp");
}

fn start(folder: &std::path::Path, name: &'static str, words: &str) -> Service {
    let words = words.split(' ').map(str::to_owned).collect();
    Service::start(Recipe { name, words, variables: Vec::new(), folder: folder.to_owned() })
}

fn main() -> ExitCode {
    let plan = Plan::read();
    if let Err(why) = hosts::enter_own_machine() {
        eprintln!("NOT TESTED: this machine does not permit namespaces of our own: {why}");
        return ExitCode::FAILURE;
    }
    std::fs::create_dir_all(&plan.out).expect("the report can be saved");
    tokio::runtime::Runtime::new().expect("a runtime").block_on(soak(&plan))
}

async fn soak(plan: &Plan) -> ExitCode {
    let folder = PathBuf::from("/tmp/soak");
    std::fs::create_dir_all(&folder).expect("our own /tmp");
    let here: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let sites = Sites::start(here).expect("the practice sites start");
    let policy = SimModel::start_at(here, Duration::ZERO, false, Arc::new(act)).await;
    write_tasks(&folder, &sites, plan.episodes);
    let redis = format!("redis-server --save  --appendonly no --dir /tmp/soak --port {REDIS}");
    let mut redis = start(&folder, "redis", &redis);
    let words = format!(
        "-q serve {INSTANCES} --master-port {MASTER} --redis redis://127.0.0.1:{REDIS} --allow-private-network"
    );
    let mut farm = start(&folder, "farm", &format!("{} {words}", plan.webgym));
    let http = testkit::Http::new(&format!("http://127.0.0.1:{MASTER}"), Some("default_key"));
    poll_until("all instances are ready", STARTING, async || {
        let told = http.try_send(hyper::Method::GET, "/metrics", &[], "", &[]).await.ok()?;
        testkit::Slots::try_read(&told.text()).ok().filter(testkit::Slots::all_free)
    })
    .await;
    let words = format!(
        "{} -q rollout --resume save_path=/tmp/soak/run data_path=/tmp/soak env_config.vllm_server_url={} {RUN} \
         env_config.master_port={MASTER} env_config.server_size={INSTANCES}",
        plan.webgym,
        policy.url()
    );
    let begun = Instant::now();
    let mut collector = start(&folder, "collector", &words);
    let meters = Meters {
        farm: farm.pid().expect("it runs"),
        collector: poll_until("it runs", STARTING, async || collector.pid()).await,
        redis: redis.pid().expect("it runs"),
        redis_port: REDIS,
        temporary: vec![
            "/tmp".into(),
            "/dev/shm".into(),
            farm.temporary.clone(),
            collector.temporary.clone(),
        ],
    };
    let mut samples: Vec<(f64, f64, Sample)> = Vec::new();
    let ended = tokio::select! {
        ended = collector.finishes(plan.limit) => ended,
        () = sample(&meters, &policy, begun, &mut samples) => false,
    };
    let took = begun.elapsed();
    let restarted = farm.starts() + collector.starts() > 2;
    let done = count_finished();
    for service in [&mut collector, &mut farm, &mut redis] {
        service.stop().await;
    }
    report(plan, &samples, &Outcome { ended, restarted, done, took })
}

const RUN: &str = "--config-name=rollout_test env_config.test_tasks=tasks.jsonl env_config.test_tasks_rollout_size=0 \
     env_config.test_tasks_repeat_times=1 env_config.host_ip=127.0.0.1 env_config.completion_threshold=1 \
     env_config.monitor_port=null judge=reference";

/// An episode asks the policy twice.
async fn sample(meters: &Meters, policy: &SimModel, begun: Instant, samples: &mut Vec<(f64, f64, Sample)>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let episodes = policy.count() as f64 / 2.0;
        let sample = meters.read();
        if sample.get("collector: memory, MiB").is_some_and(|memory| *memory > 0.0) {
            samples.push((begun.elapsed().as_secs_f64(), episodes, sample));
        }
    }
}

fn count_finished() -> usize {
    let save_path = store::SavePath::new("/tmp/soak/run");
    let all = store::iteration::summaries_of(&save_path, store::Split::Test, 0).unwrap_or_default();
    all.iter().filter(|one| one.outcome == Some(proto::trajectory::Outcome::Success)).count()
}

struct Outcome {
    ended: bool,
    restarted: bool,
    done: usize,
    took: Duration,
}

fn report(plan: &Plan, samples: &[(f64, f64, Sample)], outcome: &Outcome) -> ExitCode {
    let last = samples.last().map_or(0.0, |sample| sample.1);
    let late: Vec<&(f64, f64, Sample)> = samples.iter().filter(|sample| sample.1 >= last / 4.0).collect();
    let names: Vec<&'static str> =
        samples.first().map(|sample| sample.2.keys().copied().collect()).unwrap_or_default();
    let (mut rows, mut grew) = (Vec::new(), Vec::new());
    println!(
        "| what | mean | least – most | slope per 1,000 episodes | growth from 25 % to 100 % | allowed |\n|---|---|---|---|---|---|"
    );
    for name in names {
        let points: Vec<(f64, f64)> =
            late.iter().filter_map(|(_, at, sample)| Some((*at, *sample.get(name)?))).collect();
        let line = line(&points);
        let allowed = tolerance(name, line.mean);
        // What cannot be read is no number, and no success either.
        if line.growth.is_nan() || line.growth > allowed {
            grew.push(name);
        }
        println!(
            "| {name} | {:.1} | {:.0} – {:.0} | {:+.2} | {:+.2} | {allowed:.1} |",
            line.mean, line.least, line.most, line.per_thousand, line.growth
        );
        rows.push(json!({
            "what": name, "mean": line.mean, "least": line.least, "most": line.most,
            "per_thousand_episodes": line.per_thousand, "growth": line.growth, "allowed": allowed,
        }));
    }
    let Outcome { ended, restarted, done, took } = *outcome;
    let rate = done as f64 / took.as_secs_f64();
    println!(
        "\n{done} of {} episodes in {:.0} s ({rate:.1} a second), {} samples",
        plan.episodes,
        took.as_secs_f64(),
        samples.len()
    );
    let passed = grew.is_empty() && !restarted && late.len() >= 10 && (done == plan.episodes || !ended);
    let series: Vec<Value> = samples
        .iter()
        .map(|(at, episodes, sample)| json!({"at": at, "episodes": episodes, "values": sample}))
        .collect();
    let saved = json!({"passed": passed, "episodes": done, "took": took.as_secs_f64(), "lines": rows, "samples": series});
    let path = plan.out.join("report.json");
    std::fs::write(&path, saved.to_string()).expect("the report can be saved");
    if restarted {
        println!("WRONG: the farm or the collector died and was started again");
    }
    for name in &grew {
        println!("WRONG: {name} grows");
    }
    if !ended {
        println!("the time was over before all episodes were");
    }
    println!("{}. The report is {}", if passed { "PASSED" } else { "FAILED" }, path.display());
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
