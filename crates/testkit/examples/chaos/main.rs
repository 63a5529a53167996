//! Chaos test: collects continuously on real Chromium while a seeded schedule kills, freezes, starves and disconnects
//! everything the run depends on. A checker that only observes from outside reports trajectories that were lost,
//! duplicated or wrongly scored, and anything left behind. Prints a report, saves it as JSON and exits with status 1 if
//! something was wrong.
//!
//!     cargo run --release -p webgym-testkit --example chaos -- --webgym target/release/webgym --seed 1
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step fails the test")]

mod checker;
mod evidence;
mod faults;
mod orphans;
mod report;
mod roles;
mod rounds;
mod service;
mod system;
mod tasks;

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use proto::trajectory::Outcome;
use serde_json::json;
use testkit::{
    arguments::{Arguments, exit},
    hosts,
};

use checker::{Baseline, Checker};
use evidence::Disk;
use report::Report;
use system::System;

/// The whole program ends by then in any case.
const TOTAL_TIMEOUT: Duration = Duration::from_mins(8);
/// A run without faults; a browser or two may still be starting.
const UNDISTURBED_RUN_TIMEOUT: Duration = Duration::from_secs(150);
/// The run in progress when the faults end.
const LAST_RUN_TIMEOUT: Duration = Duration::from_mins(2);
/// A lease that was granted at the moment of its client's death must expire first.
const ALL_FREE_TIMEOUT: Duration = Duration::from_secs(40);
const DEFAULT_FAULT_SECONDS: u64 = 200;

fn main() -> ExitCode {
    let arguments = Arguments::from_env(&["--webgym", "--seed", "--seconds", "--out", "--part", "--at"]);
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    if let (Some(role), Some(address)) = (arguments.text("--part"), arguments.text("--at")) {
        let address = address.parse().unwrap_or_else(|_| exit("--at must be an address with a port"));
        runtime().block_on(roles::play(role, address));
        return ExitCode::SUCCESS;
    }
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs() % 100_000);
    let seed = arguments.number("--seed").unwrap_or_else(clock);
    let faults_for = Duration::from_secs(arguments.number("--seconds").unwrap_or(DEFAULT_FAULT_SECONDS));
    let webgym = arguments.program("--webgym", "target/release/webgym");
    let out = arguments.folder("--out", "target/chaos");
    if let Err(reason) = hosts::enter_isolated_machine(&[&webgym, &out]) {
        eprintln!("NOT TESTED: this machine does not allow namespaces: {reason}");
        eprintln!(
            "Run as root, or allow unprivileged user namespaces, with iproute2, nftables and util-linux installed."
        );
        return ExitCode::FAILURE;
    }
    println!("seed {seed}; repeat with --seed {seed}");
    let webgym = webgym.display().to_string();
    let whole = run(&webgym, seed, faults_for, &out);
    let Ok(report) = runtime().block_on(async { tokio::time::timeout(TOTAL_TIMEOUT, whole).await }) else {
        println!("\nFAILED: not finished within {TOTAL_TIMEOUT:?}");
        return ExitCode::FAILURE;
    };
    report.print();
    report.save(&out.join(format!("report-{seed}.json")));
    if report.findings.is_empty() {
        println!("\nPASSED. The report is {}", out.join(format!("report-{seed}.json")).display());
        return ExitCode::SUCCESS;
    }
    println!("\nFAILED. Logs are in {}", out.display());
    ExitCode::FAILURE
}

async fn run(webgym: &str, seed: u64, faults_for: Duration, out: &Path) -> Report {
    let started = Instant::now();
    let mut system = System::start(webgym).await;
    let baseline = collect_baseline(&mut system).await;
    let successes = baseline.values().filter(|one| one.outcome == Some(Outcome::Success)).count();
    println!("{:.0?}: without faults, {successes} of {} tasks succeed", started.elapsed(), baseline.len());
    system.collect("run");
    let checker = Checker::start(&system, system.disk.join("run"), baseline);
    let mut report = Report { seed, ..Report::default() };
    rounds::inject_all(&system, &checker, seed, faults_for, &mut report).await;
    println!("{:.0?}: the faults have ended", started.elapsed());
    let findings = std::sync::Arc::clone(&checker.findings);
    let starts = finish_runs(&mut system, &findings).await;
    rounds::wait_all_free(&system, &findings, ALL_FREE_TIMEOUT).await;
    let judged = system.judge_again("run").await;
    rounds::check_redis_keys(&system, &findings);
    let summary = checker.finish(system.tasks).await;
    if summary.unjudged > 0 {
        findings.report(format!("{} trajectories are still unjudged: {judged}", summary.unjudged));
    }
    for name in system.stop().await {
        findings.report(format!("{name} did not stop after SIGTERM"));
    }
    checker::check_leftovers(&system, &findings).await;
    keep_logs(&system, out);
    let count = |count: &std::sync::atomic::AtomicUsize| count.load(std::sync::atomic::Ordering::Relaxed);
    report.facts.extend([
        ("runs finished", json!(summary.runs)),
        ("trajectories finished, each once", json!(summary.finished)),
        ("collector starts", json!(starts)),
        ("judged again afterwards", json!(judged)),
        ("checks of the disk", json!(count(&findings.disk_checks))),
        ("checks of the slots", json!(count(&findings.slot_checks))),
        ("checks of processes and profiles", json!(count(&findings.process_checks))),
    ]);
    report.duration = started.elapsed();
    report.findings = findings.all();
    report
}

/// Finishes the run in progress, then one without faults that cleans up after the killed ones. Returns how often the
/// collector was started.
async fn finish_runs(system: &mut System, findings: &checker::Findings) -> usize {
    let mut starts = 0;
    for start_another in [false, true] {
        if start_another {
            system.collect("run");
        }
        let collector = system.collector.as_mut().expect("the collector was started");
        if !collector.wait_for_success(LAST_RUN_TIMEOUT).await {
            findings.report(format!("a run after the last fault did not end within {LAST_RUN_TIMEOUT:?}"));
        }
        starts += collector.starts();
    }
    starts
}

/// Collects every task once without faults and returns the results.
async fn collect_baseline(system: &mut System) -> Baseline {
    system.collect("baseline");
    let collector = system.collector.as_mut().expect("the collector was started");
    assert!(
        collector.wait_for_success(UNDISTURBED_RUN_TIMEOUT).await,
        "a run without faults does not finish; see {}",
        system.folder.display()
    );
    system.collector = None;
    let all = Disk::new(system.disk.join("baseline")).finished().expect("readable trajectories");
    let baseline: Baseline = all.into_values().map(|one| (one.task.clone(), one)).collect();
    assert_eq!(baseline.len(), system.tasks, "every task was collected once");
    let is_verdict = |outcome| matches!(outcome, Some(Outcome::Success | Outcome::Failure));
    assert!(baseline.values().all(|one| is_verdict(one.outcome)), "{baseline:#?}");
    let both = [Outcome::Success, Outcome::Failure]
        .map(|wanted| baseline.values().any(|one| one.outcome == Some(wanted)));
    assert_eq!(both, [true, true], "there are successes and failures: {baseline:#?}");
    baseline
}

/// Copies the logs out of the isolated `/tmp`, which disappears with this process.
fn keep_logs(system: &System, out: &Path) {
    for path in evidence::entries(&system.folder)
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
    {
        let _ = std::fs::copy(path, out.join(path.file_name().unwrap_or_default()));
    }
}
