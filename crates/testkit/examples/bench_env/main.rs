//! Compares sessions of `webgym env` over WebSocket with the same steps through the `/step` of the same farm, in turns, and
//! measures the memory of the environment server per session. The server uses the farm over HTTP, so its process has no
//! browsers.
//!
//!     cargo run --release -p webgym-testkit --example bench_env -- --webgym target/release/webgym [--sessions 64] [--rounds 5]
//!         [--seconds 20]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step ends the measurement")]

mod process;
mod workers;

use std::{path::Path, sync::Arc, time::Duration};

use practice::Sites;
use process::{ProcessUsage, load_average};
use testkit::{Webgym, arguments::Arguments};
use workers::{Driver, Turn};

/// What one round measured.
struct Round {
    step: Turn,
    socket: Turn,
}

impl Round {
    fn ratio(&self) -> f64 {
        self.socket.steps_per_second() / self.step.steps_per_second()
    }
}

/// The two processes under test.
struct System {
    farm: Webgym,
    env: Webgym,
    sites: Arc<Sites>,
}

impl System {
    async fn start(webgym: &Path, sessions: usize) -> Self {
        let sites = Arc::new(Sites::start(([127, 0, 0, 1], 0).into()).expect("practice sites"));
        let count = sessions.to_string();
        let fixed = "-q serve --master-port 0 --node-port 0 --allow-private-network --no-mirror";
        let arguments: Vec<&str> = fixed.split(' ').chain([count.as_str()]).collect();
        let farm = Webgym::start(webgym, &arguments).await;
        let url = farm.url("master");
        let arguments = ["-q", "env", "--port", "0", "--queue-secs", "120", "--farm", &url];
        let env = Webgym::start(webgym, &arguments).await;
        Self { farm, env, sites }
    }

    fn step_driver(&self) -> Driver {
        Driver::step(&self.farm.url("master"))
    }

    fn socket_driver(&self) -> Driver {
        Driver::Socket { url: self.env.url("env") }
    }

    async fn run(&self, driver: &Driver, sessions: usize, seconds: f64) -> Turn {
        workers::run_turn(driver, sessions, Duration::from_secs_f64(seconds), &self.sites, self.env.pid())
            .await
    }

    async fn stop(self) {
        self.env.stop().await;
        self.farm.stop().await;
    }
}

#[tokio::main]
async fn main() {
    let given = Arguments::from_env(&["--webgym", "--sessions", "--rounds", "--seconds"]);
    let webgym = given.program("--webgym", "target/release/webgym");
    let sessions = usize::try_from(given.number("--sessions").unwrap_or(64)).unwrap();
    let rounds = given.number("--rounds").unwrap_or(5);
    let seconds = given.number("--seconds").unwrap_or(20) as f64;
    let system = System::start(&webgym, sessions).await;
    let unused = ProcessUsage::of(system.env.pid());
    // Fills caches, of the pages and of the allocator, before anything counts.
    for driver in [system.step_driver(), system.socket_driver()] {
        system.run(&driver, sessions, seconds / 2.0).await;
    }
    println!("{sessions} sessions, {rounds} rounds with {seconds} s each; load {}", load_average());
    println!(
        "| round | /step, steps per second | WebSocket, steps per second | ratio | load |\n|---|---|---|---|---|"
    );
    let mut measured = Vec::new();
    for number in 0..rounds {
        let (step_driver, socket_driver) = (system.step_driver(), system.socket_driver());
        // Each order half of the time: the machine may become slower or faster during a round.
        let (step, socket) = if number % 2 == 0 {
            let step = system.run(&step_driver, sessions, seconds).await;
            (step, system.run(&socket_driver, sessions, seconds).await)
        } else {
            let socket = system.run(&socket_driver, sessions, seconds).await;
            (system.run(&step_driver, sessions, seconds).await, socket)
        };
        let round = Round { step, socket };
        println!(
            "| {number} | {:.1} | {:.1} | {:.2} | {} |",
            round.step.steps_per_second(),
            round.socket.steps_per_second(),
            round.ratio(),
            load_average()
        );
        measured.push(round);
    }
    report(&measured, &unused, sessions);
    system.stop().await;
}

fn report(measured: &[Round], unused: &ProcessUsage, sessions: usize) {
    let spread = |mut values: Vec<f64>, digits: usize| {
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let middle = f64::midpoint(values[(count - 1) / 2], values[count / 2]);
        format!("{middle:.digits$} ({:.digits$}–{:.digits$})", values[0], values[count - 1])
    };
    let over = |value: fn(&Round) -> f64, digits| spread(measured.iter().map(value).collect(), digits);
    println!("\nmedian (minimum–maximum):");
    println!("ratio WebSocket / step: {}", over(Round::ratio, 2));
    println!("/step: {} steps per second", over(|round| round.step.steps_per_second(), 1));
    println!("WebSocket: {} steps per second", over(|round| round.socket.steps_per_second(), 1));
    println!("latency p50, ms: /step {}", over(|round| round.step.median_latency(), 0));
    println!("latency p50, ms: WebSocket {}", over(|round| round.socket.median_latency(), 0));
    println!("response, KiB: /step {}", over(|round| round.step.response_kib(), 1));
    println!("response, KiB: WebSocket {}", over(|round| round.socket.response_kib(), 1));
    println!(
        "CPU of the environment server per step, ms: {}",
        over(|round| round.socket.cpu_ms_per_step(), 2)
    );
    let per_session = |kib: f64| (kib - unused.resident_kib) / sessions as f64;
    let memory = |value: fn(&Turn) -> f64| {
        spread(measured.iter().map(|round| per_session(value(&round.socket))).collect(), 0)
    };
    println!("server without sessions, MiB: {:.1}", unused.resident_kib / 1024.0);
    println!(
        "server memory per session after the resets, KiB: {}",
        memory(|turn| turn.resident_after_reset_kib)
    );
    println!(
        "server memory per session while all step (highest sample), KiB: {}",
        memory(|turn| turn.resident_peak_kib)
    );
    println!("server memory per session between steps, KiB: {}", memory(|turn| turn.resident_idle_kib));
}
