//! Sessions that step in a closed loop for the time of a turn. Leases and episodes are opened before and closed after it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use practice::Sites;
use serde_json::{Value, json};
use testkit::{EnvClient, Farm, Lease, Tier};
use tokio::{sync::Barrier, task::JoinSet};

use crate::process::ProcessUsage;

/// How often the memory of the server is read during a turn.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// What performs the steps.
#[derive(Clone)]
pub(crate) enum Driver {
    Step { farm: Box<Farm>, client: Box<Client<HttpConnector, Full<Bytes>>> },
    Socket { url: String },
}

/// One session of a driver.
enum Session {
    Step { farm: Box<Farm>, client: Box<Client<HttpConnector, Full<Bytes>>>, lease: Lease },
    Socket(Box<EnvClient>),
}

impl Driver {
    pub(crate) fn step(url: &str) -> Self {
        let client = Box::new(Client::builder(TokioExecutor::new()).build_http());
        Self::Step { farm: Box::new(Farm::new(Tier::Master, url)), client }
    }

    async fn open(&self) -> Session {
        match self {
            Self::Step { farm, client } => {
                Session::Step { farm: farm.clone(), client: client.clone(), lease: farm.get().await }
            }
            Self::Socket { url } => {
                let mut socket = EnvClient::connect(url).await;
                socket.observe("reset", &json!({})).await;
                Session::Socket(Box::new(socket))
            }
        }
    }
}

impl Session {
    /// Performs a step and returns the size of the response, which is not read further.
    async fn step(&mut self, command: &Value) -> usize {
        match self {
            Self::Socket(socket) => {
                socket.send("step", command).await;
                let text = socket.receive_text().await.expect("an observation");
                assert!(text.contains("screenshot_base64"), "{}", &text[..text.len().min(500)]);
                text.len()
            }
            Self::Step { farm, client, lease } => {
                // What the environment server asks for in each step.
                let body = json!({
                    "node": lease.node, "instance_id": lease.id, "command": command, "interaction_mode": "set_of_marks",
                    "format": "png", "include": ["screenshot", "metadata", "ac_tree"],
                });
                let request =
                    Request::builder().method(Method::POST).uri(format!("{}/step", farm.http.base()));
                let request =
                    request.header("x-api-key", "default_key").header("accept", "application/msgpack");
                let request = request.header("content-type", "application/json");
                let response =
                    client.request(request.body(Full::from(body.to_string())).unwrap()).await.unwrap();
                assert_eq!(response.status(), 200);
                response.into_body().collect().await.expect("a complete body").to_bytes().len()
            }
        }
    }

    async fn close(self) {
        match self {
            Self::Step { farm, lease, .. } => {
                farm.reset(&lease).await;
            }
            Self::Socket(mut socket) => socket.send("close", &json!({})).await,
        }
    }
}

/// The steps of an episode, as in `webgym bench`. `seed` rotates the pages, so that sessions do not run in lockstep.
fn episode(sites: &Sites, seed: usize) -> Vec<Value> {
    const PAGES: [&str; 6] =
        ["/shop/", "/wiki/", "/jobs/", "/course/inputs", "/course/long", "/course/buttons"];
    let visit =
        |number: usize| json!({"visit_page": {"url": sites.url(PAGES[(number + seed) % PAGES.len()])}});
    let page_down = || json!({"page_down": {"amount": 600.0}});
    vec![
        visit(0),
        json!({"click_coords": {"x": 300, "y": 300}}),
        json!({"hover_coords": {"x": 500, "y": 200}}),
        visit(1),
        page_down(),
        json!({"back": {}}),
        visit(2),
        json!({"fill_coords": {"x": 400, "y": 160, "value": "lamp"}}),
        visit(3),
        json!({"click_coords": {"x": 200, "y": 400}}),
        visit(4),
        page_down(),
    ]
}

/// What a turn measured.
#[derive(Default)]
pub(crate) struct Turn {
    seconds: f64,
    latencies_ms: Vec<f64>,
    bytes: usize,
    cpu_seconds: f64,
    pub(crate) resident_after_reset_kib: f64,
    pub(crate) resident_peak_kib: f64,
    pub(crate) resident_idle_kib: f64,
}

impl Turn {
    pub(crate) fn steps_per_second(&self) -> f64 {
        self.latencies_ms.len() as f64 / self.seconds
    }

    pub(crate) fn median_latency(&self) -> f64 {
        let mut latencies = self.latencies_ms.clone();
        latencies.sort_by(f64::total_cmp);
        latencies[latencies.len() / 2]
    }

    pub(crate) fn response_kib(&self) -> f64 {
        self.bytes as f64 / self.latencies_ms.len() as f64 / 1024.0
    }

    pub(crate) fn cpu_ms_per_step(&self) -> f64 {
        self.cpu_seconds * 1000.0 / self.latencies_ms.len() as f64
    }
}

/// The latencies in milliseconds and the bytes of one session's steps.
type Steps = (Vec<f64>, usize);

/// Runs `count` sessions for `duration`. Steps that end later count with the time that they take.
pub(crate) async fn run_turn(
    driver: &Driver,
    count: usize,
    duration: Duration,
    sites: &Arc<Sites>,
    server: u32,
) -> Turn {
    let (ready, finished) = (Arc::new(Barrier::new(count + 1)), Arc::new(Barrier::new(count + 1)));
    let measured = Arc::new(Barrier::new(count + 1));
    let mut sessions = JoinSet::new();
    for number in 0..count {
        let (driver, sites) = (driver.clone(), Arc::clone(sites));
        let barriers = [Arc::clone(&ready), Arc::clone(&finished), Arc::clone(&measured)];
        sessions.spawn(run_session(driver, number, duration, sites, barriers));
    }
    let mut turn = Turn::default();
    ready.wait().await;
    let before = ProcessUsage::of(server);
    turn.resident_after_reset_kib = before.resident_kib;
    let since = Instant::now();
    let mut sampling = tokio::time::interval(SAMPLE_INTERVAL);
    let all_finished = finished.wait();
    tokio::pin!(all_finished);
    loop {
        tokio::select! {
            _ = &mut all_finished => break,
            _ = sampling.tick() => {
                turn.resident_peak_kib = turn.resident_peak_kib.max(ProcessUsage::of(server).resident_kib);
            }
        }
    }
    turn.seconds = since.elapsed().as_secs_f64();
    let after = ProcessUsage::of(server);
    (turn.cpu_seconds, turn.resident_idle_kib) = (after.cpu_seconds - before.cpu_seconds, after.resident_kib);
    measured.wait().await;
    for (latencies, bytes) in sessions.join_all().await {
        turn.latencies_ms.extend(latencies);
        turn.bytes += bytes;
    }
    turn
}

async fn run_session(
    driver: Driver,
    number: usize,
    duration: Duration,
    sites: Arc<Sites>,
    [ready, finished, measured]: [Arc<Barrier>; 3],
) -> Steps {
    let mut session = driver.open().await;
    let commands = episode(&sites, number);
    session.step(&commands[0]).await;
    ready.wait().await;
    let since = Instant::now();
    let (mut latencies, mut bytes) = (Vec::new(), 0);
    for command in commands.iter().cycle().skip(1 + number % commands.len()) {
        if since.elapsed() >= duration {
            break;
        }
        let start = Instant::now();
        bytes += session.step(command).await;
        latencies.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    finished.wait().await;
    measured.wait().await;
    session.close().await;
    (latencies, bytes)
}
