//! A thousand murders under load: clients lease, browse and give back, while browsers, renderers and helpers are
//! killed at random. Prints a report; ends badly if a slot leaked, a process or a file was left over, the sum of
//! slots was ever wrong, or a client got an answer that the API does not promise.
//!
//!     cargo run --release -p webgym-testkit --example chaos_farm -- --webgym target/release/webgym --kills 1000
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must stop")]

use std::{
    collections::{BTreeMap, HashSet},
    net::SocketAddr,
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
    Dice, Farm, Lease, Process, Reply, Slots, Watch, Webgym, arguments::Arguments, descendants, poll_until,
    signal,
};

/// What a client may be told in such times.
const PROMISED: &[&str] =
    &["instance_lost", "no_capacity", "navigation_failed", "timeout", "element_not_found"];

struct Plan {
    webgym: String,
    kills: u64,
    instances: usize,
    share: usize,
    clients: usize,
    seed: u64,
    limit: Duration,
}

impl Plan {
    fn read() -> Self {
        const KNOWN: [&str; 7] = [
            "--kills",
            "--instances",
            "--instances-per-browser",
            "--clients",
            "--seed",
            "--limit-secs",
            "--webgym",
        ];
        let given = Arguments::read(&KNOWN);
        let number = |name: &str, default: u64| given.number(name).unwrap_or(default);
        Self {
            kills: number("--kills", 1000),
            instances: number("--instances", 16) as usize,
            share: number("--instances-per-browser", 1) as usize,
            clients: number("--clients", 6) as usize,
            seed: number("--seed", 1),
            limit: Duration::from_secs(number("--limit-secs", 1800)),
            webgym: given.text("--webgym").unwrap_or("target/release/webgym").to_owned(),
        }
    }
}

#[derive(Default)]
struct Tally {
    episodes: AtomicU64,
    calls: AtomicU64,
    failures: Mutex<BTreeMap<String, u64>>,
    unpromised: Mutex<Vec<String>>,
}

impl Tally {
    /// True when the call succeeded; a failure is counted, and one that is not promised is kept.
    fn note(&self, what: &str, answer: Result<Reply, String>) -> Option<Reply> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let (code, text) = match answer {
            Ok(reply) if reply.status == 200 => return Some(reply),
            Ok(reply) => (reply.code(), format!("{} {}", reply.status, reply.text())),
            Err(error) => ("no answer".to_owned(), error),
        };
        if !PROMISED.contains(&code.as_str()) {
            self.unpromised.lock().unwrap().push(format!("{what}: {text}"));
        }
        *self.failures.lock().unwrap().entry(code).or_default() += 1;
        None
    }
}

/// One client: lease, browse, give back, over and over.
async fn client(farm: Farm, pages: Vec<String>, tally: Arc<Tally>, stop: Arc<AtomicBool>, seed: u64) {
    let mut dice = Dice::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let wait = [("wait_secs", "60")];
        let got = tally.note("get", farm.http.try_send(Method::POST, "/get", &wait, "", &[]).await);
        let Some(lease) = got.map(|reply| Lease::read(&reply.json())) else { continue };
        if episode(&farm, &lease, &pages, &tally, &mut dice).await {
            tally.episodes.fetch_add(1, Ordering::Relaxed);
        }
        let whom = [("instance_id", lease.id.as_str()), ("node", lease.node.as_str())];
        tally.note("reset", farm.http.try_send(Method::POST, "/reset", &whom, "", &[]).await);
    }
}

async fn episode(farm: &Farm, lease: &Lease, pages: &[String], tally: &Tally, dice: &mut Dice) -> bool {
    for _ in 0..=dice.below(3) {
        let url = &pages[dice.below(pages.len())];
        let body =
            json!({"instance_id": lease.id, "node": lease.node, "command": {"visit_page": {"url": url}}});
        let kind = [("content-type", "application/json")];
        let step = farm.http.try_send(Method::POST, "/step", &[], body.to_string(), &kind).await;
        if tally.note("step", step).is_none() {
            return false;
        }
    }
    true
}

/// Picks a victim among everything the farm's browsers run, and ends it.
fn kill_one(webgym: &Webgym, dice: &mut Dice) -> Option<&'static str> {
    let browsers = webgym.browsers();
    let browser = browsers.get(dice.below(browsers.len()))?;
    let renderers = browser.renderers();
    let (kind, pid) = match dice.below(10) {
        0..5 => ("browsers", browser.pid),
        5..9 => ("renderers", renderers.get(dice.below(renderers.len()))?.pid),
        _ => {
            let mut others = browser.processes();
            others.retain(|one| one.pid != browser.pid && one.pid != browser.group && !one.is_renderer());
            ("helpers", others.get(dice.below(others.len()))?.pid)
        }
    };
    signal(pid, Signal::KILL);
    Some(kind)
}

async fn murder(plan: &Plan, webgym: &Webgym) -> BTreeMap<&'static str, u64> {
    let mut dice = Dice::new(plan.seed);
    let mut killed: BTreeMap<&'static str, u64> = BTreeMap::new();
    let end = Instant::now() + plan.limit;
    while killed.values().sum::<u64>() < plan.kills && Instant::now() < end {
        if let Some(kind) = kill_one(webgym, &mut dice) {
            *killed.entry(kind).or_default() += 1;
            let sum = killed.values().sum::<u64>();
            if sum.is_multiple_of(100) {
                eprintln!("{sum} killed");
            }
        }
        tokio::time::sleep(Duration::from_millis(100 + dice.below(400) as u64)).await;
    }
    killed
}

#[tokio::main]
async fn main() -> ExitCode {
    let plan = Plan::read();
    let sites = Sites::start(SocketAddr::from(([127, 0, 0, 1], 0))).expect("the practice sites start");
    let pages =
        ["/course/buttons", "/course/inputs", "/course/long", "/shop/", "/wiki/", "/jobs/", "/course/storm"];
    let pages: Vec<String> = pages.iter().map(|path| sites.url(path)).collect();
    let (instances, share) = (plan.instances.to_string(), plan.share.to_string());
    let words = "-q serve --master-port 0 --node-port 0 --allow-private-network --instances-per-browser";
    let words: Vec<&str> = words.split(' ').chain([share.as_str(), instances.as_str()]).collect();
    let webgym = Webgym::start(&plan.webgym, &words).await;
    let farm = webgym.master();
    let (watch, tally, stop) =
        (Watch::start(&farm.http), Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..plan.clients as u64)
        .map(|n| {
            tokio::spawn(client(
                farm.clone(),
                pages.clone(),
                Arc::clone(&tally),
                Arc::clone(&stop),
                plan.seed + n,
            ))
        })
        .collect();
    let started = Instant::now();
    let killed = murder(&plan, &webgym).await;
    let took = started.elapsed();
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("a client goes on whatever happens");
    }
    report(&plan, webgym, watch, &tally, &killed, took).await
}

/// Ended processes that nobody has reaped in a while: those that we or our guards should have, and those that a living
/// Chromium keeps (it waits for its zygotes only when it ends itself).
async fn lasting_zombies(pid: u32) -> (Vec<Process>, Vec<Process>) {
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

/// A Chromium itself, not the guard that also names its profile.
fn is_browser(process: &Process) -> bool {
    let program = process.command.first().map(String::as_str).unwrap_or_default();
    !process.zombie
        && program.contains("chrom")
        && !process.command.iter().any(|word| word.contains("webgym-guard"))
}

async fn report(
    plan: &Plan,
    mut webgym: Webgym,
    watch: Watch,
    tally: &Tally,
    killed: &BTreeMap<&'static str, u64>,
    took: Duration,
) -> ExitCode {
    let http = webgym.master().http;
    let calm = Instant::now();
    let slots = poll_until("every slot is back", Duration::from_secs(120), async || {
        let slots = Slots::of(&http).await;
        (slots.all_free() && slots.browsers == webgym.browsers().len()).then_some(slots)
    })
    .await;
    let recovered = calm.elapsed();
    let (looks, wrong) = watch.end().await;
    let (zombies, theirs) = lasting_zombies(webgym.pid()).await;
    let browsers = webgym.browsers();
    webgym.signal(Signal::TERM);
    let end = webgym.ended(Duration::from_secs(60)).await;
    let left = webgym.leftovers().len() + browsers.iter().filter(|browser| !browser.is_gone()).count();
    let unpromised = tally.unpromised.lock().unwrap();
    let sum: u64 = killed.values().sum();
    println!("| what | result |\n|---|---|");
    println!("| killed | {sum} in {:.0} s: {killed:?} |", took.as_secs_f64());
    println!(
        "| farm | {} instances, {} a browser, {} clients, seed {} |",
        plan.instances, plan.share, plan.clients, plan.seed
    );
    println!("| calls answered | {} |", tally.calls.load(Ordering::Relaxed));
    println!("| episodes finished | {} |", tally.episodes.load(Ordering::Relaxed));
    println!("| failures told to clients | {:?} |", tally.failures.lock().unwrap());
    println!("| answers the API does not promise | {} |", unpromised.len());
    println!("| browsers started again | {} |", slots.restarts);
    println!("| leases lost with their browser | {} |", slots.lost);
    println!("| the slots added up | {} of {looks} times |", looks - wrong.len());
    println!("| slots leaked | {} |", slots.capacity - slots.available);
    println!("| all slots free again after | {:.1} s |", recovered.as_secs_f64());
    println!("| ended processes that we did not reap | {} |", zombies.len());
    println!("| ended processes that a living Chromium keeps | {} |", theirs.len());
    println!("| its end when asked to stop | {end} |");
    println!("| processes and files left after it | {left} |");
    for one in &zombies {
        eprintln!("a zombie that lasts: {} of {}", one.pid, one.parent);
    }
    for one in unpromised.iter().take(10) {
        eprintln!("not promised: {one}");
    }
    let clean = wrong.is_empty() && left == 0 && zombies.is_empty() && end.success();
    let good = clean && unpromised.is_empty() && sum >= plan.kills && looks > 0;
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
