//! Benchmarks the monitor: ten thousand tasks that change constantly, five viewers, and a page in a real Chromium. Prints the
//! CPU time that the viewers cost the server, as a share of one core, and the page's frames per second.
//!
//!     cargo run --release -p webgym-web --example bench_monitor
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark stops at the first error")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/fake_run.rs"]
mod fake_run;

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use common::Tab;
use fake_run::FakeRun;
use rollout::run::event::Stage;
use rustix::time::{ClockId, clock_gettime};

const TASKS: usize = 10_000;
const VIEWERS: usize = 5;
/// Every task changes once a second.
const EVENTS_PER_SECOND: usize = 10_000;
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(8);
const STAGES: [Stage; 6] =
    [Stage::Navigate, Stage::Metadata, Stage::Screenshot, Stage::AcTree, Stage::Policy, Stage::Execute];

#[tokio::main]
async fn main() {
    if let Some(address) = std::env::args().nth(1).filter(|argument| argument.contains(':')) {
        return view(&address);
    }
    let run = FakeRun::new(TASKS);
    let sent = Arc::new(AtomicU64::new(0));
    let changing = std::thread::spawn({
        let (run, sent) = (run.clone(), Arc::clone(&sent));
        move || change(&run, &sent)
    });
    let monitor = run.monitor().await;
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        let alone = cpu_over(ROUND).await;
        let mut viewers: Vec<Child> = (0..VIEWERS).map(|_| start_viewer(monitor.address())).collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let watched = cpu_over(ROUND).await;
        for viewer in &mut viewers {
            viewer.kill().unwrap();
            viewer.wait().unwrap();
        }
        println!(
            "CPU of the server process: {:.2} % without viewers, {:.2} % with {VIEWERS}",
            alone * 100.0,
            watched * 100.0
        );
        shares.push((watched - alone) * 100.0);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    shares.sort_by(f64::total_cmp);
    println!(
        "{VIEWERS} viewers of {TASKS} changing tasks cost {:.2} % of one core (median of {ROUNDS})",
        shares[ROUNDS / 2]
    );
    frames(&monitor.link()).await;
    println!("{} task changes were sent meanwhile", sent.load(Ordering::Relaxed));
    drop(monitor);
    drop(changing);
}

/// Moves tasks through their stages until the process ends, in an order that spreads the changes over the whole grid.
fn change(run: &FakeRun, sent: &AtomicU64) {
    let began = Instant::now();
    for round in 0_usize.. {
        let index = round.wrapping_mul(7919) % TASKS;
        let turn = round / TASKS;
        run.enter_stage(index, turn % 30, STAGES[(turn + index) % STAGES.len()]);
        sent.fetch_add(1, Ordering::Relaxed);
        let due = Duration::from_secs_f64(round as f64 / EVENTS_PER_SECOND as f64);
        if round % 100 == 0 && due > began.elapsed() {
            std::thread::sleep(due.saturating_sub(began.elapsed()));
        }
    }
}

async fn cpu_over(time: Duration) -> f64 {
    let cpu = || {
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32).as_secs_f64()
    };
    let (before, since) = (cpu(), Instant::now());
    tokio::time::sleep(time).await;
    (cpu() - before) / since.elapsed().as_secs_f64()
}

/// Starts a viewer as a separate process, so that its own CPU time is not measured.
fn start_viewer(address: std::net::SocketAddr) -> Child {
    let own = std::env::current_exe().unwrap();
    Command::new(own).arg(address.to_string()).stdin(Stdio::null()).spawn().unwrap()
}

fn view(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut buffer = vec![0; 1 << 16];
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

/// Counts the frames and DOM updates of a page for eight seconds.
const MEASURE: &str = "new Promise((done) => { let frames = 0, longest = 0, seen = 0, last = performance.now(); const began = last; \
    const watched = document.querySelector('.side'); \
    if (watched) new MutationObserver(() => { seen += 1; }).observe(watched, {subtree: true, childList: true, characterData: true}); \
    const frame = (now) => { frames += 1; longest = Math.max(longest, now - last); last = now; const took = now - began; \
      if (took < 8000) requestAnimationFrame(frame); else done([frames / took * 1000, longest, seen / took * 1000]); }; \
    requestAnimationFrame(frame); })";

/// Measures an empty page first, to know what the machine can do at the moment, and then the monitor.
async fn frames(link: &str) {
    let tab = Tab::open().await;
    tab.set_size(1440, 900, 1.0).await;
    for (what, url) in [("an empty page", "about:blank"), ("the monitor", link)] {
        tab.visit(url).await;
        if url == link {
            tab.wait_until("document.querySelector('[data-status=live]') && document.querySelector('.run')")
                .await;
        }
        let measured = tab.eval(MEASURE).await;
        let number = |index: usize| measured[index].as_f64().unwrap_or_default();
        println!(
            "{what}: {:.1} frames/s, longest pause {:.0} ms, {:.1} updates/s",
            number(0),
            number(1),
            number(2)
        );
    }
    tab.assert_no_errors();
    tab.close().await;
}
