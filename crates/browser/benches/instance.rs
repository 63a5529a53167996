//! Measures the cost of an instance: the time to create it, observe it, act on it and dispose it, and the memory of each
//! further one. Run with `cargo bench -p webgym-browser`. A plain program, because it measures a browser, not a function.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot run should say why and stop"
)]

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use browser::{Host, Instance, Launch, ObserveRequest, Options, find_browsers};
use practice::Sites;
use proto::{Command, InteractionMode, command::Point};
use serde_json::{Value, json};

const ROUNDS: usize = 40;
const FURTHER_INSTANCES: usize = 8;

#[tokio::main]
async fn main() {
    let sites = Sites::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free loopback port");
    let mut results = Vec::new();
    for executable in find_browsers() {
        let kind = executable.kind;
        if results.iter().any(|result: &Value| result["browser"] == kind.to_string()) {
            continue;
        }
        let launched = Instant::now();
        let host = Host::launch(&Launch::new(executable)).await.expect("the browser starts");
        let launch = launched.elapsed();
        let mut rows = times(&host, &sites).await;
        rows.insert(0, Row::new("start of the browser", vec![launch]));
        let memory = memory_per_instance(&host, &sites).await;
        results.push(report(&host, &rows, memory));
        host.close().await;
    }
    println!("\n{}", serde_json::to_string_pretty(&results).expect("JSON"));
    sites.stop().await;
}

/// The measured durations of one operation, sorted.
struct Row {
    what: &'static str,
    times: Vec<Duration>,
}

impl Row {
    fn new(what: &'static str, mut times: Vec<Duration>) -> Self {
        times.sort();
        Self { what, times }
    }

    /// Returns a percentile in milliseconds.
    fn percentile(&self, percent: usize) -> f64 {
        let index = (self.times.len() * percent / 100).min(self.times.len() - 1);
        (self.times[index].as_secs_f64() * 10_000.0).round() / 10.0
    }
}

async fn times(host: &Host, sites: &Sites) -> Vec<Row> {
    let (mut create, mut dispose) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let instance = host.instance(&Options::default()).await.expect("an instance");
        create.push(started.elapsed());
        let started = Instant::now();
        instance.dispose().await.expect("disposing");
        dispose.push(started.elapsed());
    }
    let mut instance = host.instance(&Options::default()).await.expect("an instance");
    let (shop, nothing) = (visit(sites, "/shop/"), visit(sites, "/course/settle/nothing"));
    let visits = time(&mut instance, async |instance| run(instance, &shop).await).await;
    let plain = ObserveRequest::screenshot(InteractionMode::Coordinates);
    let coordinates = time(&mut instance, async |instance| observe(instance, &plain).await).await;
    let marks = ObserveRequest::screenshot(InteractionMode::SetOfMarks);
    let set_of_marks = time(&mut instance, async |instance| observe(instance, &marks).await).await;
    run(&mut instance, &nothing).await;
    let idle = Command::ClickCoords { point: Point { x: 640.0, y: 600.0 } };
    let clicks = time(&mut instance, async |instance| run(instance, &idle).await).await;
    instance.dispose().await.expect("disposing");
    vec![
        Row::new("create an instance", create),
        Row::new("dispose of an instance", dispose),
        Row::new("visit_page (shop front page) and settle", visits),
        Row::new("screenshot, coordinates", coordinates),
        Row::new("screenshot, set of marks", set_of_marks),
        Row::new("click and settle, idle page", clicks),
    ]
}

async fn time(instance: &mut Instance, act: impl AsyncFn(&mut Instance)) -> Vec<Duration> {
    act(instance).await;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        act(instance).await;
        times.push(started.elapsed());
    }
    times
}

fn visit(sites: &Sites, path: &str) -> Command {
    Command::VisitPage { url: sites.url(path) }
}

async fn run(instance: &mut Instance, command: &Command) {
    instance.execute(command).await.expect("the command succeeds");
}

async fn observe(instance: &mut Instance, request: &ObserveRequest) {
    instance.observe(request).await.expect("a screenshot");
}

/// Returns the MiB that each further instance adds once it shows a page. Averages over several, so that the memory of the
/// browser itself does not count.
async fn memory_per_instance(host: &Host, sites: &Sites) -> f64 {
    let shop = visit(sites, "/shop/");
    let mut first = host.instance(&Options::default()).await.expect("an instance");
    run(&mut first, &shop).await;
    let before = memory(host.process_group());
    let mut more = Vec::new();
    for _ in 0..FURTHER_INSTANCES {
        let mut instance = host.instance(&Options::default()).await.expect("an instance");
        run(&mut instance, &shop).await;
        more.push(instance);
    }
    (memory(host.process_group()) - before) / FURTHER_INSTANCES as f64
}

/// Returns the memory of a process group in MiB; shared pages count in proportion.
fn memory(group: u32) -> f64 {
    let mut kib = 0;
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let field = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(2).map(str::to_owned));
        if field.is_none_or(|of| of != group.to_string()) {
            continue;
        }
        let rollup = fs::read_to_string(entry.path().join("smaps_rollup")).unwrap_or_default();
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        kib += line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0);
    }
    kib as f64 / 1024.0
}

fn report(host: &Host, rows: &[Row], memory: f64) -> Value {
    println!("\n{} ({})", host.kind(), host.version().product);
    println!("{:<44}{:>10}{:>10}", "", "p50 ms", "p95 ms");
    let mut all = Vec::new();
    for row in rows {
        let (middle, high) = (row.percentile(50), row.percentile(95));
        println!("{:<44}{middle:>10.1}{high:>10.1}", row.what);
        all.push(json!({"what": row.what, "p50_ms": middle, "p95_ms": high, "tries": row.times.len()}));
    }
    let memory = (memory * 10.0).round() / 10.0;
    println!("{:<44}{memory:>10.1}", "MiB for each further instance (PSS)");
    json!({"browser": host.kind().to_string(), "version": host.version().product, "times": all, "mib_per_instance": memory})
}
