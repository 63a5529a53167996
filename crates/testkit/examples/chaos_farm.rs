//! Kills a thousand processes of a farm under load: clients lease, browse and release, while browsers, renderers and
//! helpers are killed at random. Prints a report; exits with status 1 if a slot leaked, a process or a file was left
//! over, the slots ever did not add up, or a client got an error that the API does not document.
//!
//!     cargo run --release -p webgym-testkit --example chaos_farm -- --webgym target/release/webgym --kills 1000
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step fails the test")]

use std::{
    collections::{BTreeMap, HashSet},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hyper::Method;
use practice::Sites;
use rustix::process::Signal;
use serde_json::json;
use testkit::{
    Farm, Lease, Process, Reply, Rng, SlotMonitor, Slots, Webgym, arguments::Arguments, descendants,
    poll_until, signal,
};

/// The error codes that a client may get while processes are killed.
const DOCUMENTED_CODES: &[&str] =
    &["instance_lost", "no_capacity", "navigation_failed", "timeout", "element_not_found"];

struct Options {
    webgym: PathBuf,
    kills: u64,
    instances: usize,
    per_browser: usize,
    clients: usize,
    seed: u64,
    limit: Duration,
}

impl Options {
    fn from_env() -> Self {
        const KNOWN: [&str; 7] = [
            "--kills",
            "--instances",
            "--instances-per-browser",
            "--clients",
            "--seed",
            "--limit-secs",
            "--webgym",
        ];
        let given = Arguments::from_env(&KNOWN);
        let number = |name: &str, default: u64| given.number(name).unwrap_or(default);
        Self {
            kills: number("--kills", 1000),
            instances: number("--instances", 16) as usize,
            per_browser: number("--instances-per-browser", 1) as usize,
            clients: number("--clients", 6) as usize,
            seed: number("--seed", 1),
            limit: Duration::from_secs(number("--limit-secs", 1800)),
            webgym: given.program("--webgym", "target/release/webgym"),
        }
    }
}

#[derive(Default)]
struct Tally {
    episodes: AtomicU64,
    calls: AtomicU64,
    failures: Mutex<BTreeMap<String, u64>>,
    undocumented: Mutex<Vec<String>>,
}

impl Tally {
    /// Counts a call and returns its reply if it succeeded. Records errors that are not documented.
    fn record(&self, call: &str, result: Result<Reply, String>) -> Option<Reply> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let (code, text) = match result {
            Ok(reply) if reply.status == 200 => return Some(reply),
            Ok(reply) => (reply.code(), format!("{} {}", reply.status, reply.text())),
            Err(error) => ("no response".to_owned(), error),
        };
        if !DOCUMENTED_CODES.contains(&code.as_str()) {
            self.undocumented.lock().unwrap().push(format!("{call}: {text}"));
        }
        *self.failures.lock().unwrap().entry(code).or_default() += 1;
        None
    }
}

/// A client that leases, browses and releases in a loop.
async fn client(farm: Farm, pages: Vec<String>, tally: Arc<Tally>, stop: Arc<AtomicBool>, seed: u64) {
    let mut rng = Rng::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let wait = [("wait_secs", "60")];
        let got = tally.record("get", farm.http.try_send(Method::POST, "/get", &wait, "", &[]).await);
        let Some(lease) = got.map(|reply| Lease::parse(&reply.json())) else { continue };
        if episode(&farm, &lease, &pages, &tally, &mut rng).await {
            tally.episodes.fetch_add(1, Ordering::Relaxed);
        }
        let target = [("instance_id", lease.id.as_str()), ("node", lease.node.as_str())];
        tally.record("reset", farm.http.try_send(Method::POST, "/reset", &target, "", &[]).await);
    }
}

async fn episode(farm: &Farm, lease: &Lease, pages: &[String], tally: &Tally, rng: &mut Rng) -> bool {
    for _ in 0..=rng.below(3) {
        let url = &pages[rng.below(pages.len())];
        let body =
            json!({"instance_id": lease.id, "node": lease.node, "command": {"visit_page": {"url": url}}});
        let kind = [("content-type", "application/json")];
        let step = farm.http.try_send(Method::POST, "/step", &[], body.to_string(), &kind).await;
        if tally.record("step", step).is_none() {
            return false;
        }
    }
    true
}

/// Kills a random process of the farm's browsers.
fn kill_one(webgym: &Webgym, rng: &mut Rng) -> Option<&'static str> {
    let browsers = webgym.browsers();
    let browser = browsers.get(rng.below(browsers.len()))?;
    let renderers = browser.renderers();
    let (kind, pid) = match rng.below(10) {
        0..5 => ("browsers", browser.pid),
        5..9 => ("renderers", renderers.get(rng.below(renderers.len()))?.pid),
        _ => {
            let mut others = browser.processes();
            others.retain(|one| one.pid != browser.pid && one.pid != browser.group && !one.is_renderer());
            ("helpers", others.get(rng.below(others.len()))?.pid)
        }
    };
    signal(pid, Signal::KILL);
    Some(kind)
}

async fn kill_processes(options: &Options, webgym: &Webgym) -> BTreeMap<&'static str, u64> {
    let mut rng = Rng::new(options.seed);
    let mut killed: BTreeMap<&'static str, u64> = BTreeMap::new();
    let end = Instant::now() + options.limit;
    while killed.values().sum::<u64>() < options.kills && Instant::now() < end {
        if let Some(kind) = kill_one(webgym, &mut rng) {
            *killed.entry(kind).or_default() += 1;
            let sum = killed.values().sum::<u64>();
            if sum.is_multiple_of(100) {
                eprintln!("{sum} processes killed");
            }
        }
        tokio::time::sleep(Duration::from_millis(100 + rng.below(400) as u64)).await;
    }
    killed
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::from_env();
    let sites = Sites::start(SocketAddr::from(([127, 0, 0, 1], 0))).expect("the practice sites start");
    let pages =
        ["/course/buttons", "/course/inputs", "/course/long", "/shop/", "/wiki/", "/jobs/", "/course/storm"];
    let pages: Vec<String> = pages.iter().map(|path| sites.url(path)).collect();
    let (instances, per_browser) = (options.instances.to_string(), options.per_browser.to_string());
    let arguments = "-q serve --master-port 0 --node-port 0 --allow-private-network --instances-per-browser";
    let arguments: Vec<&str> =
        arguments.split(' ').chain([per_browser.as_str(), instances.as_str()]).collect();
    let webgym = Webgym::start(&options.webgym, &arguments).await;
    let farm = webgym.master();
    let (watch, tally, stop) =
        (SlotMonitor::start(&farm.http), Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..options.clients as u64)
        .map(|n| {
            tokio::spawn(client(
                farm.clone(),
                pages.clone(),
                Arc::clone(&tally),
                Arc::clone(&stop),
                options.seed + n,
            ))
        })
        .collect();
    let started = Instant::now();
    let killed = kill_processes(&options, &webgym).await;
    let duration = started.elapsed();
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("a client does not panic");
    }
    report(&options, webgym, watch, &tally, &killed, duration).await
}

/// Returns zombies that were not reaped in time: those that we or the reapers should have reaped, and those of running
/// Chromiums, which reap their zygotes only when they exit.
async fn unreaped_zombies(pid: u32) -> (Vec<Process>, Vec<Process>) {
    let begun = Instant::now();
    loop {
        let all = descendants(pid);
        let browsers: HashSet<u32> = all.iter().filter(|one| is_browser(one)).map(|one| one.pid).collect();
        let zombies = all.into_iter().filter(|one| one.zombie);
        let (theirs, ours): (Vec<_>, Vec<_>) = zombies.partition(|one| browsers.contains(&one.parent));
        // Every process is a zombie for a moment when it ends.
        if ours.is_empty() || begun.elapsed() > Duration::from_secs(20) {
            return (ours, theirs);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns whether this is a Chromium, not the reaper that also has its profile in the command line.
fn is_browser(process: &Process) -> bool {
    let program = process.command.first().map(String::as_str).unwrap_or_default();
    !process.zombie
        && program.contains("chrom")
        && !process.command.iter().any(|word| word.contains("webgym-reaper"))
}

async fn report(
    options: &Options,
    mut webgym: Webgym,
    watch: SlotMonitor,
    tally: &Tally,
    killed: &BTreeMap<&'static str, u64>,
    duration: Duration,
) -> ExitCode {
    let http = webgym.master().http;
    let faults_ended = Instant::now();
    let slots = poll_until("every slot is free", Duration::from_secs(120), async || {
        let slots = Slots::fetch(&http).await;
        (slots.is_all_free() && slots.browsers == webgym.browsers().len()).then_some(slots)
    })
    .await;
    let recovered = faults_ended.elapsed();
    let (samples, inconsistent) = watch.stop().await;
    let (zombies, theirs) = unreaped_zombies(webgym.pid()).await;
    let browsers = webgym.browsers();
    webgym.signal(Signal::TERM);
    let end = webgym.wait_for_exit(Duration::from_secs(60)).await;
    let left = webgym.leftovers().len() + browsers.iter().filter(|browser| !browser.is_gone()).count();
    let undocumented = tally.undocumented.lock().unwrap();
    let sum: u64 = killed.values().sum();
    println!("| what | result |\n|---|---|");
    println!("| killed | {sum} in {:.0} s: {killed:?} |", duration.as_secs_f64());
    println!(
        "| farm | {} instances, {} per browser, {} clients, seed {} |",
        options.instances, options.per_browser, options.clients, options.seed
    );
    println!("| calls | {} |", tally.calls.load(Ordering::Relaxed));
    println!("| episodes finished | {} |", tally.episodes.load(Ordering::Relaxed));
    println!("| errors returned to clients | {:?} |", tally.failures.lock().unwrap());
    println!("| errors that the API does not document | {} |", undocumented.len());
    println!("| browsers restarted | {} |", slots.restarts);
    println!("| leases lost with their browser | {} |", slots.lost);
    println!("| the slots added up | {} of {samples} times |", samples - inconsistent.len());
    println!("| slots leaked | {} |", slots.capacity - slots.available);
    println!("| all slots free again after | {:.1} s |", recovered.as_secs_f64());
    println!("| zombies that we did not reap | {} |", zombies.len());
    println!("| zombies of running Chromiums | {} |", theirs.len());
    println!("| exit status after SIGTERM | {end} |");
    println!("| processes and files left behind | {left} |");
    for one in &zombies {
        eprintln!("unreaped zombie: {} of parent {}", one.pid, one.parent);
    }
    for one in undocumented.iter().take(10) {
        eprintln!("not documented: {one}");
    }
    let clean = inconsistent.is_empty() && left == 0 && zombies.is_empty() && end.success();
    let good = clean && undocumented.is_empty() && sum >= options.kills && samples > 0;
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
