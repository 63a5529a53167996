//! The schedule: every kind of fault at least once, in random order, sometimes two at once, each followed by a bounded
//! wait for recovery. Also the checks after the last fault.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use testkit::Rng;

use crate::{
    checker::{Checker, Findings},
    faults::{KINDS, Kind, inject},
    report::{Report, Round},
    system::{System, slots_of},
};

/// No fault is started after this time.
const MAX_SCHEDULE: Duration = Duration::from_mins(5);
/// After a fault, every slot must be usable again within this time.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);
/// After a fault, another trajectory must be finished within this time.
const PROGRESS_TIMEOUT: Duration = Duration::from_mins(1);
/// The system counts as recovered when it stays so for this time.
const STABLE_FOR: Duration = Duration::from_secs(1);
/// The checker may take this long to notice a trajectory on the disk.
const CHECKER_DELAY: Duration = Duration::from_millis(400);
/// No single fault lasts longer.
const FAULT_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) async fn inject_all(
    system: &System,
    checker: &Checker,
    seed: u64,
    faults_for: Duration,
    report: &mut Report,
) {
    let (mut rng, begun) = (Rng::new(seed), Instant::now());
    // Wait for the first trajectory, so that there is something to lose.
    measure_recovery(system, checker).await;
    let mut remaining: Vec<Kind> = Vec::new();
    let mut all_injected = false;
    while (!all_injected || begun.elapsed() < faults_for) && begun.elapsed() < MAX_SCHEDULE {
        if remaining.is_empty() {
            remaining.extend(KINDS);
            rng.shuffle(&mut remaining);
        }
        let mut kinds: Vec<Kind> = remaining.pop().into_iter().collect();
        if rng.below(3) == 0 {
            kinds.extend(remaining.pop());
        }
        let at = begun.elapsed();
        let faults = inject_concurrently(&kinds, system, &mut rng).await;
        // A fault without a target is tried again later.
        let missed = kinds.iter().filter(|kind| !faults.iter().any(|(made, _)| made == *kind));
        missed.for_each(|kind| remaining.insert(0, *kind));
        let (recovered, progress) = measure_recovery(system, checker).await;
        let round = Round { at, faults, recovered, progress };
        print_round(&round, checker);
        report.rounds.push(round);
        all_injected = all_injected || remaining.is_empty();
        tokio::time::sleep(Duration::from_millis(rng.below(1500) as u64)).await;
    }
    let made =
        |kind: &Kind| report.rounds.iter().any(|round| round.faults.iter().any(|(made, _)| made == kind));
    for kind in KINDS.iter().filter(|kind| !made(kind)) {
        checker.findings.report(format!("not enough time for this fault: {}", kind.name()));
    }
}

async fn inject_concurrently(kinds: &[Kind], system: &System, rng: &mut Rng) -> Vec<(Kind, String)> {
    let (mut first_rng, mut second_rng) = (rng.split(), rng.split());
    let (first, second) = (kinds.first().copied(), kinds.get(1).copied());
    let fault = async |kind: Option<Kind>, rng: &mut Rng| {
        let kind = kind?;
        match tokio::time::timeout(FAULT_TIMEOUT, inject(kind, system, rng)).await {
            Ok(target) => target.map(|target| (kind, target)),
            Err(_) => Some((kind, format!("not finished within {FAULT_TIMEOUT:?}"))),
        }
    };
    let (first, second) = tokio::join!(fault(first, &mut first_rng), fault(second, &mut second_rng));
    first.into_iter().chain(second).collect()
}

/// Measures the time until all slots are usable and stay so, and the time until another trajectory is finished.
async fn measure_recovery(system: &System, checker: &Checker) -> (Option<Duration>, Option<Duration>) {
    let (since, mut before) = (Instant::now(), checker.finished());
    // A single check right after the fault may succeed because the farm has not noticed the fault yet.
    let (mut recovered, mut progress): (Option<Duration>, Option<Duration>) = (None, None);
    loop {
        let now = since.elapsed();
        let is_stable = recovered.is_some_and(|recovered| now > recovered + STABLE_FOR);
        if !is_stable {
            match system.check_healthy().await {
                Ok(()) => recovered = recovered.or(Some(now)),
                Err(reason) if now > RECOVERY_TIMEOUT => {
                    checker.findings.report(format!("not recovered within {RECOVERY_TIMEOUT:?}: {reason}"));
                    return (None, progress);
                }
                Err(_) => recovered = None,
            }
        }
        if since.elapsed() < CHECKER_DELAY {
            // The checker may only now notice what was finished before.
            before = checker.finished();
        } else if progress.is_none() && checker.finished() > before {
            progress = Some(since.elapsed());
        }
        if is_stable && progress.is_some() {
            return (recovered, progress);
        }
        if progress.is_none() && since.elapsed() > PROGRESS_TIMEOUT {
            checker.findings.report(format!("no trajectory was finished within {PROGRESS_TIMEOUT:?}"));
            return (recovered, progress);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn print_round(round: &Round, checker: &Checker) {
    let faults: Vec<String> =
        round.faults.iter().map(|(kind, target)| format!("{} ({target})", kind.name())).collect();
    println!(
        "{:>4.0} s {}: recovered after {:.1} s, next trajectory after {:.1} s, {} finished",
        round.at.as_secs_f64(),
        faults.join(" + "),
        round.recovered.unwrap_or_default().as_secs_f64(),
        round.progress.unwrap_or_default().as_secs_f64(),
        checker.finished()
    );
}

/// Checks that every slot becomes free after the last run.
pub(crate) async fn wait_all_free(system: &System, findings: &Findings, limit: Duration) {
    let end = Instant::now() + limit;
    for url in system.node_urls() {
        loop {
            let slots = slots_of(&url).await;
            if slots.as_ref().is_ok_and(testkit::Slots::is_all_free) {
                break;
            }
            if Instant::now() > end {
                findings.report(format!("not all slots of {url} are free after {limit:?}: {slots:?}"));
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Checks that the registry has exactly the two nodes and that every key expires.
pub(crate) fn check_redis_keys(system: &System, findings: &Findings) {
    let query = |database: &str, arguments: &[&str]| -> Vec<String> {
        let ip = system.hosts.redis.ip.to_string();
        let output = Command::new("redis-cli").args(["-h", &ip, "-n", database]).args(arguments).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    };
    let nodes = query("1", &["--scan", "--pattern", "omnibox:nodes:*"]);
    if nodes.len() != 2 {
        findings.report(format!("the registry must have two nodes, but has {nodes:?}"));
    }
    for database in ["0", "1"] {
        for key in query(database, &["--scan"]) {
            let left = query(database, &["TTL", &key]);
            if left.first().is_some_and(|seconds| seconds.trim() == "-1") {
                findings.report(format!("the key {key} in Redis database {database} never expires"));
            }
        }
    }
}
