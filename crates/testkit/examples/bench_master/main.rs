//! Measures the real master over many simulated nodes: fills them to the last slot, then leases come and go. Says what the
//! master used of the CPU, how long `/get` took, and how evenly the nodes were loaded.
//!
//!     cargo run --release -p webgym-testkit --example bench_master -- --webgym target/release/webgym [--nodes 1,5,25,50,100,200]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot go on must stop")]

mod nodes;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use nodes::Node;
use serde_json::Value;
use testkit::{Farm, Lease, Redis, Webgym, arguments::Arguments, eventually};
use tokio::task::JoinSet;

const SLOTS: u16 = 128;
/// How many ask at once while the farm is being filled.
const CROWD: usize = 32;
/// Leases that come and go afterwards, at this steady rate, with nearly all slots taken.
const CHURN: usize = 6000;
const RATE: f64 = 300.0;

/// A client that keeps its connections, as collectors do.
#[derive(Clone)]
struct Asker {
    client: Client<HttpConnector, Full<Bytes>>,
    base: String,
}

impl Asker {
    async fn post(&self, path: &str) -> (u16, Value) {
        let request = Request::builder().method(Method::POST).uri(format!("{}{path}", self.base));
        let request = request.header("x-api-key", "default_key").body(Full::default()).unwrap();
        let answer = self.client.request(request).await.expect("the master answers");
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("to the end").to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self) -> (Lease, Duration) {
        let key = uuid::Uuid::new_v4();
        let asked = Instant::now();
        let (status, body) = self.post(&format!("/get?wait_secs=60&idempotency_key={key}")).await;
        assert_eq!(status, 200, "{body}");
        (Lease::read(&body), asked.elapsed())
    }

    async fn reset(&self, lease: &Lease) {
        let node: String = url::form_urlencoded::byte_serialize(lease.node.as_bytes()).collect();
        let (status, body) = self.post(&format!("/reset?instance_id={}&node={node}", lease.id)).await;
        assert_eq!(status, 200, "{body}");
    }
}

/// Seconds of CPU a process has used.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().map(|place| fields[*place].parse::<f64>().unwrap()).sum();
    ticks / 100.0
}

fn percentile(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    let place = ((times.len() as f64 - 1.0) * share).round() as usize;
    times[place].as_secs_f64() * 1000.0
}

/// The largest and the smallest number of leases on a node.
fn spread(nodes: &[Node]) -> (usize, usize) {
    let loads: Vec<usize> = nodes.iter().map(Node::load).collect();
    (*loads.iter().max().unwrap(), *loads.iter().min().unwrap())
}

async fn fill(asker: &Asker, nodes: &[Node], total: usize) -> (Vec<Lease>, Vec<Duration>, (usize, usize)) {
    let left = Arc::new(AtomicUsize::new(total));
    let mut callers = JoinSet::new();
    for _ in 0..CROWD {
        let (asker, left) = (asker.clone(), Arc::clone(&left));
        callers.spawn(async move {
            let mut got = Vec::new();
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            {
                got.push(asker.get().await);
            }
            got
        });
    }
    while left.load(Ordering::Relaxed) > total / 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let half = spread(nodes);
    let got: Vec<(Lease, Duration)> = callers.join_all().await.into_iter().flatten().collect();
    let (leases, times) = got.into_iter().unzip();
    (leases, times, half)
}

/// The oldest goes, a new one comes, at a steady rate whatever the answers take.
async fn churn(asker: &Asker, leases: Vec<Lease>) -> (Vec<Lease>, Vec<Duration>) {
    let held = Arc::new(Mutex::new(VecDeque::from(leases)));
    let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / RATE));
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let mut callers = JoinSet::new();
    for _ in 0..CHURN {
        pace.tick().await;
        let (asker, held) = (asker.clone(), Arc::clone(&held));
        callers.spawn(async move {
            let oldest = held.lock().unwrap().pop_front().expect("many are held");
            asker.reset(&oldest).await;
            let (lease, took) = asker.get().await;
            held.lock().unwrap().push_back(lease);
            took
        });
    }
    let times = callers.join_all().await;
    let leases = held.lock().unwrap().drain(..).collect();
    (leases, times)
}

async fn measure(webgym: &str, count: usize) {
    let redis = Redis::start().await;
    let mut nodes = Vec::new();
    for place in 0..count {
        let node = Node::start(SLOTS).await;
        redis.ask(1, &["SET", &format!("omnibox:nodes:sim-{place}"), &node.url, "EX", "3600"]).await;
        nodes.push(node);
    }
    let master = Webgym::start(webgym, &["-q", "master", "--port", "0", "--redis", &redis.url()]).await;
    let farm: Farm = master.master();
    eventually("the master knows them all", Duration::from_secs(60), async || {
        farm.info().await["nodes"].as_array().is_some_and(|known| known.len() == count)
    })
    .await;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let asker = Asker { client, base: farm.http.base().to_owned() };

    let total = count * usize::from(SLOTS);
    let (used, started) = (cpu(master.pid()), Instant::now());
    let (mut leases, mut filling, half) = fill(&asker, &nodes, total).await;
    let (fill_cpu, fill_time) = (cpu(master.pid()) - used, started.elapsed().as_secs_f64());
    assert_eq!(spread(&nodes), (SLOTS.into(), SLOTS.into()), "every slot is leased, none twice");

    for lease in leases.split_off(total - total / 20) {
        asker.reset(&lease).await;
    }
    let (used, started) = (cpu(master.pid()), Instant::now());
    let (leases, mut coming) = churn(&asker, leases).await;
    let (churn_cpu, churn_time) = (cpu(master.pid()) - used, started.elapsed().as_secs_f64());
    let after = spread(&nodes);
    println!(
        "| {count} | {total} | {:.0} | {:.0} | {:.1} / {:.1} | {} / {} | {:.0} % | {:.1} / {:.1} | {} / {} |",
        total as f64 / fill_time,
        fill_cpu / total as f64 * 1e6,
        percentile(&mut filling, 0.5),
        percentile(&mut filling, 0.99),
        half.0,
        half.1,
        churn_cpu / churn_time * 100.0,
        percentile(&mut coming, 0.5),
        percentile(&mut coming, 0.99),
        after.0,
        after.1,
    );
    drop(leases);
    master.stop().await;
}

#[tokio::main]
async fn main() {
    let given = Arguments::read(&["--webgym", "--nodes"]);
    let webgym = given.text("--webgym").unwrap_or("target/release/webgym");
    let sizes = given.text("--nodes").unwrap_or("1,5,25,50,100,200");
    println!(
        "| nodes | leases | filling: /get a second | CPU µs a /get | /get p50 / p99 ms | load max / min at half | \
         coming and going: CPU | /get p50 / p99 ms | load max / min |\n|---|---|---|---|---|---|---|---|---|"
    );
    for size in sizes.split(',') {
        measure(webgym, size.trim().parse().expect("--nodes 25,50")).await;
    }
}
