//! Measures the real master with many simulated nodes: fills every slot, then releases and acquires leases at a steady
//! rate. Reports the CPU use of the master, the latency of `/get` and how evenly the nodes were loaded.
//!
//!     cargo run --release -p webgym-testkit --example bench_master -- --webgym target/release/webgym [--nodes 1,5,25,50,100,200]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step ends the measurement")]

mod nodes;

use std::{
    collections::VecDeque,
    path::Path,
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
use testkit::{
    Farm, Lease, Redis, Webgym,
    arguments::{Arguments, exit},
    eventually,
};
use tokio::task::JoinSet;

const SLOTS_PER_NODE: u16 = 128;
/// Concurrent clients while the farm is filled.
const FILL_CLIENTS: usize = 32;
/// Leases that are replaced afterwards, with nearly all slots taken.
const CHURN_LEASES: usize = 6000;
const CHURN_PER_SECOND: f64 = 300.0;

/// A client that reuses its connections, as collectors do.
#[derive(Clone)]
struct FarmClient {
    client: Client<HttpConnector, Full<Bytes>>,
    base: String,
}

impl FarmClient {
    async fn post(&self, path: &str) -> (u16, Value) {
        let request = Request::builder().method(Method::POST).uri(format!("{}{path}", self.base));
        let request = request.header("x-api-key", "default_key").body(Full::default()).unwrap();
        let answer = self.client.request(request).await.expect("the master responds");
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("a complete body").to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self) -> (Lease, Duration) {
        let key = uuid::Uuid::new_v4();
        let asked = Instant::now();
        let (status, body) = self.post(&format!("/get?wait_secs=60&idempotency_key={key}")).await;
        assert_eq!(status, 200, "{body}");
        (Lease::parse(&body), asked.elapsed())
    }

    async fn reset(&self, lease: &Lease) {
        let node: String = url::form_urlencoded::byte_serialize(lease.node.as_bytes()).collect();
        let (status, body) = self.post(&format!("/reset?instance_id={}&node={node}", lease.id)).await;
        assert_eq!(status, 200, "{body}");
    }
}

/// Returns the CPU seconds that a process has used.
fn cpu_seconds(pid: u32) -> f64 {
    let process = procfs::process::Process::new(pid.cast_signed()).expect("the process runs");
    let stat = process.stat().expect("the process runs");
    (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64
}

fn percentile(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    let index = ((times.len() as f64 - 1.0) * share).round() as usize;
    times[index].as_secs_f64() * 1000.0
}

/// Returns the largest and the smallest number of leases on a node.
fn max_and_min_load(nodes: &[Node]) -> (usize, usize) {
    let loads: Vec<usize> = nodes.iter().map(Node::load).collect();
    (*loads.iter().max().unwrap(), *loads.iter().min().unwrap())
}

async fn fill(
    farm_client: &FarmClient,
    nodes: &[Node],
    total: usize,
) -> (Vec<Lease>, Vec<Duration>, (usize, usize)) {
    let left = Arc::new(AtomicUsize::new(total));
    let mut callers = JoinSet::new();
    for _ in 0..FILL_CLIENTS {
        let (farm_client, left) = (farm_client.clone(), Arc::clone(&left));
        callers.spawn(async move {
            let mut got = Vec::new();
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            {
                got.push(farm_client.get().await);
            }
            got
        });
    }
    while left.load(Ordering::Relaxed) > total / 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let half = max_and_min_load(nodes);
    let got: Vec<(Lease, Duration)> = callers.join_all().await.into_iter().flatten().collect();
    let (leases, times) = got.into_iter().unzip();
    (leases, times, half)
}

/// Replaces the oldest lease by a new one, at a steady rate independent of the response times.
async fn churn(farm_client: &FarmClient, leases: Vec<Lease>) -> (Vec<Lease>, Vec<Duration>) {
    let held = Arc::new(Mutex::new(VecDeque::from(leases)));
    let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / CHURN_PER_SECOND));
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let mut callers = JoinSet::new();
    for _ in 0..CHURN_LEASES {
        pace.tick().await;
        let (farm_client, held) = (farm_client.clone(), Arc::clone(&held));
        callers.spawn(async move {
            let oldest = held.lock().unwrap().pop_front().expect("many leases are held");
            farm_client.reset(&oldest).await;
            let (lease, took) = farm_client.get().await;
            held.lock().unwrap().push_back(lease);
            took
        });
    }
    let times = callers.join_all().await;
    let leases = held.lock().unwrap().drain(..).collect();
    (leases, times)
}

async fn measure(webgym: &Path, count: usize) {
    let redis = Redis::start().await;
    let mut nodes = Vec::new();
    for index in 0..count {
        let node = Node::start(SLOTS_PER_NODE).await;
        redis.query(1, &["SET", &format!("omnibox:nodes:sim-{index}"), &node.url, "EX", "3600"]).await;
        nodes.push(node);
    }
    let master = Webgym::start(webgym, &["-q", "master", "--port", "0", "--redis", &redis.url()]).await;
    let farm: Farm = master.master();
    eventually("the master knows all nodes", Duration::from_secs(60), async || {
        farm.info().await["nodes"].as_array().is_some_and(|known| known.len() == count)
    })
    .await;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let farm_client = FarmClient { client, base: farm.http.base().to_owned() };

    let total = count * usize::from(SLOTS_PER_NODE);
    let (used, started) = (cpu_seconds(master.pid()), Instant::now());
    let (mut leases, mut filling, half) = fill(&farm_client, &nodes, total).await;
    let (fill_cpu, fill_time) = (cpu_seconds(master.pid()) - used, started.elapsed().as_secs_f64());
    assert_eq!(
        max_and_min_load(&nodes),
        (SLOTS_PER_NODE.into(), SLOTS_PER_NODE.into()),
        "every slot is leased once"
    );

    for lease in leases.split_off(total - total / 20) {
        farm_client.reset(&lease).await;
    }
    let (used, started) = (cpu_seconds(master.pid()), Instant::now());
    let (leases, mut coming) = churn(&farm_client, leases).await;
    let (churn_cpu, churn_time) = (cpu_seconds(master.pid()) - used, started.elapsed().as_secs_f64());
    let after = max_and_min_load(&nodes);
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
    let given = Arguments::from_env(&["--webgym", "--nodes"]);
    let webgym = given.program("--webgym", "target/release/webgym");
    let sizes = given.text("--nodes").unwrap_or("1,5,25,50,100,200");
    println!(
        "| nodes | leases | filling: /get per second | CPU µs per /get | /get p50 / p99 ms | load max / min at half | \
         replacing leases: CPU | /get p50 / p99 ms | load max / min |\n|---|---|---|---|---|---|---|---|---|"
    );
    let parse = |size: &str| size.trim().parse();
    let sizes: Result<Vec<usize>, _> = sizes.split(',').map(parse).collect();
    for size in sizes.unwrap_or_else(|_| exit("--nodes must be a list of numbers, such as 25,50")) {
        measure(&webgym, size).await;
    }
}
