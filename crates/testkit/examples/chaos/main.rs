//! Collects continuously on real Chromium while everything it depends on is killed, frozen, starved and cut off, by a
//! seeded schedule. A checker that reads only outside evidence says whether anything was lost, doubled, blamed on the
//! agent or left behind. Prints a report, saves it as JSON and ends badly if anything was wrong.
//!
//!     cargo run --release -p webgym-testkit --example chaos -- --webgym target/release/webgym --seed 1
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must stop")]

mod checker;
mod evidence;
mod faults;
mod orphans;
mod report;
mod roles;
mod rounds;
mod service;
mod tasks;
mod world;

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use proto::trajectory::Outcome;
use serde_json::json;
use testkit::{arguments::Arguments, hosts};

use checker::{Calm, Checker};
use evidence::Disk;
use report::Report;
use world::World;

/// However it goes, it is over by then.
const LIMIT: Duration = Duration::from_mins(8);
/// A run without faults; a browser or two may still be starting.
const UNDISTURBED: Duration = Duration::from_secs(150);
/// What is under way when the faults are over.
const LAST_RUN: Duration = Duration::from_mins(2);
/// A lease that was granted in the very moment of its client's death runs out by itself.
const ALL_FREE: Duration = Duration::from_secs(40);

fn main() -> ExitCode {
    let arguments = Arguments::read(&["--webgym", "--seed", "--seconds", "--out", "--part", "--at"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if let (Some(part), Some(address)) = (arguments.text("--part"), arguments.text("--at")) {
        let address = address.parse().expect("--at is an address with a port");
        return runtime
            .block_on(roles::play(part, address))
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if let Err(why) = hosts::enter_own_machine() {
        eprintln!("NOT TESTED: this machine does not permit namespaces of our own: {why}");
        eprintln!(
            "Run as root, or allow unprivileged user namespaces, with iproute2, nftables and util-linux installed."
        );
        return ExitCode::FAILURE;
    }
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs() % 100_000);
    let seed = arguments.number("--seed").unwrap_or_else(clock);
    let (webgym, out) =
        (arguments.path("--webgym", "target/release/webgym"), arguments.path("--out", "target/chaos"));
    let faults_for = Duration::from_secs(arguments.number("--seconds").unwrap_or(200));
    println!("seed {seed}; again with --seed {seed}");
    std::fs::create_dir_all(&out).expect("the report can be saved");
    let webgym = webgym.display().to_string();
    let whole = run(&webgym, seed, faults_for, &out);
    let Ok(report) = runtime.block_on(async { tokio::time::timeout(LIMIT, whole).await }) else {
        println!("\nFAILED: not over within {LIMIT:?}");
        return ExitCode::FAILURE;
    };
    report.print();
    report.save(&out.join(format!("report-{seed}.json")));
    if report.wrong.is_empty() {
        println!("\nPASSED. The report is {}", out.join(format!("report-{seed}.json")).display());
        return ExitCode::SUCCESS;
    }
    println!("\nFAILED. Logs are in {}", out.display());
    ExitCode::FAILURE
}

async fn run(webgym: &str, seed: u64, faults_for: Duration, out: &Path) -> Report {
    let started = Instant::now();
    let mut world = World::start(webgym).await;
    let calm = undisturbed(&mut world).await;
    let successes = calm.values().filter(|one| one.outcome == Some(Outcome::Success)).count();
    println!("{:.0?}: undisturbed, {successes} of {} tasks succeed", started.elapsed(), calm.len());
    world.collect("run");
    let checker = Checker::start(&world, world.disk.join("run"), calm);
    let mut report = Report { seed, ..Report::default() };
    rounds::go_through(&world, &checker, seed, faults_for, &mut report).await;
    println!("{:.0?}: the faults are over", started.elapsed());
    let findings = std::sync::Arc::clone(&checker.findings);
    // The run under way, and one in peace that sweeps up what the killed ones had no time for.
    let mut starts = 0;
    for again in [false, true] {
        if again {
            world.collect("run");
        }
        let collector = world.collector.as_mut().expect("it collects");
        if !collector.finishes(LAST_RUN).await {
            findings.is_wrong(format!("a run after the last fault did not end within {LAST_RUN:?}"));
        }
        starts += collector.starts();
    }
    rounds::all_free(&world, &findings, ALL_FREE).await;
    let judged = world.judge_again("run").await;
    rounds::redis_keys(&world, &findings);
    let summary = checker.end(world.tasks).await;
    if summary.unjudged > 0 {
        findings.is_wrong(format!("{} are still unjudged: {judged}", summary.unjudged));
    }
    for name in world.stop().await {
        findings.is_wrong(format!("{name} did not stop when told to"));
    }
    checker::after_the_end(&world, &findings).await;
    keep_logs(&world, out);
    let looks = |count: &std::sync::atomic::AtomicUsize| count.load(std::sync::atomic::Ordering::Relaxed);
    let told = &summary.findings;
    report.facts.extend([
        ("runs finished", json!(summary.runs)),
        ("trajectories finished, each once", json!(summary.finished)),
        ("collector started", json!(starts)),
        ("judged again afterwards", json!(judged)),
        ("looks at the disk", json!(looks(&told.disk_looks))),
        ("looks at the slots", json!(looks(&told.slot_looks))),
        ("looks at processes and profiles", json!(looks(&told.process_looks))),
    ]);
    report.took = started.elapsed();
    report.wrong = findings.wrong();
    report
}

/// What the tasks come to when nobody disturbs the run.
async fn undisturbed(world: &mut World) -> Calm {
    world.collect("calm");
    let collector = world.collector.as_mut().expect("it collects");
    assert!(
        collector.finishes(UNDISTURBED).await,
        "a run without faults does not end; see {}",
        world.folder.display()
    );
    world.collector = None;
    let all = Disk::new(world.disk.join("calm")).finished().expect("it can be read");
    let calm: Calm = all.into_values().map(|one| (one.task.clone(), one)).collect();
    assert_eq!(calm.len(), world.tasks, "every task is there once");
    let fair = |outcome| matches!(outcome, Some(Outcome::Success | Outcome::Failure));
    assert!(calm.values().all(|one| fair(one.outcome)), "{calm:#?}");
    let both = [Outcome::Success, Outcome::Failure]
        .map(|wanted| calm.values().any(|one| one.outcome == Some(wanted)));
    assert_eq!(both, [true, true], "there are successes and failures: {calm:#?}");
    calm
}

/// Our /tmp is gone when we are.
fn keep_logs(world: &World, out: &Path) {
    for path in evidence::entries(&world.folder)
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
    {
        let _ = std::fs::copy(path, out.join(path.file_name().unwrap_or_default()));
    }
}
