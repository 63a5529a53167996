//! Checks the system from outside while it runs: the files of the run, the slots the nodes report, the process table
//! and the temporary files. It does not know which faults are injected.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use proto::trajectory::Outcome;
use tokio::task::JoinHandle;

use crate::{
    evidence::{Disk, Finished, Key, entries},
    orphans::{self, Watched},
    system::{System, slots_of},
};

/// A file may be missing while it is renamed; it must be back after this many checks.
const MAX_FAILED_CHECKS: usize = 4;
/// The reapers need a moment to clean up after a killed process, and longer on a loaded machine.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(20);

/// Task → its result in a run without faults.
pub(crate) type Baseline = BTreeMap<String, Finished>;

#[derive(Default)]
pub(crate) struct Findings {
    all: Mutex<BTreeSet<String>>,
    pub(crate) finished: AtomicUsize,
    pub(crate) disk_checks: AtomicUsize,
    pub(crate) slot_checks: AtomicUsize,
    pub(crate) process_checks: AtomicUsize,
}

impl Findings {
    /// Records a violation, once.
    pub(crate) fn report(&self, violation: String) {
        let mut all = self.all.lock().unwrap();
        if !all.contains(&violation) {
            eprintln!("WRONG: {violation}");
            all.insert(violation);
        }
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.all.lock().unwrap().iter().cloned().collect()
    }
}

pub(crate) struct Checker {
    pub(crate) findings: Arc<Findings>,
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
    /// Every trajectory that was seen finished at some time.
    seen: Arc<Mutex<BTreeMap<Key, Finished>>>,
    baseline: Arc<Baseline>,
    root: PathBuf,
}

impl Checker {
    pub(crate) fn start(system: &System, root: PathBuf, baseline: Baseline) -> Self {
        let findings: Arc<Findings> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let seen: Arc<Mutex<BTreeMap<Key, Finished>>> = Arc::default();
        let baseline = Arc::new(baseline);
        let mut tasks = Vec::new();
        for url in system.node_urls() {
            tasks.push(tokio::spawn(watch_slots(url, Arc::clone(&findings), Arc::clone(&stop))));
        }
        let disk_watch = (Arc::clone(&findings), Arc::clone(&stop), Arc::clone(&seen), Arc::clone(&baseline));
        let disk = Disk::new(root.clone());
        tasks.push(tokio::task::spawn_blocking(move || {
            let (findings, stop, seen, baseline) = disk_watch;
            watch_disk(disk, &findings, &stop, &seen, &baseline);
        }));
        let watched = Watched::new(system);
        let process_watch = (Arc::clone(&findings), Arc::clone(&stop));
        tasks.push(tokio::task::spawn_blocking(move || {
            watch_processes(&watched, &process_watch.0, &process_watch.1);
        }));
        Self { findings, stop, tasks, seen, baseline, root }
    }

    pub(crate) fn finished(&self) -> usize {
        self.findings.finished.load(Ordering::Relaxed)
    }

    /// Stops the continuous checks, then reads and checks all files again completely.
    pub(crate) async fn finish(self, tasks: usize) -> Summary {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("the checker does not panic");
        }
        let findings = &self.findings;
        let mut disk = Disk::new(self.root.clone());
        let last = disk.finished().unwrap_or_else(|error| {
            findings.report(format!("at the end: {error}"));
            BTreeMap::new()
        });
        let seen = self.seen.lock().unwrap().clone();
        for (key, before) in &seen {
            compare(findings, *key, before, last.get(key));
        }
        for (key, one) in &last {
            check_verdict(findings, *key, one, &self.baseline);
        }
        let unjudged = last.values().filter(|one| one.outcome == Some(Outcome::JudgeError)).count();
        let mut runs: BTreeMap<u64, usize> = BTreeMap::new();
        for (iteration, _) in last.keys() {
            *runs.entry(*iteration).or_default() += 1;
        }
        for (iteration, count) in runs.iter().filter(|(_, count)| **count != tasks) {
            findings.report(format!("iteration {iteration} has {count} of {tasks} trajectories"));
        }
        match disk.leftovers() {
            Ok(paths) => paths.into_iter().for_each(|path| findings.report(format!("left over: {path}"))),
            Err(error) => findings.report(error),
        }
        Summary { finished: last.len(), runs: runs.len(), unjudged }
    }
}

/// Trajectory counts at the end.
pub(crate) struct Summary {
    pub(crate) finished: usize,
    pub(crate) runs: usize,
    pub(crate) unjudged: usize,
}

/// Checks that the verdict equals that of the run without faults, or is missing because the judge was unreachable.
fn check_verdict(findings: &Findings, key: Key, one: &Finished, baseline: &Baseline) {
    let Some(wanted) = baseline.get(&one.task) else {
        return findings.report(format!("{key:?}: {} is not one of the tasks", one.task));
    };
    let unjudged = one.outcome == Some(Outcome::JudgeError);
    let same_verdict = (one.outcome, one.reward) == (wanted.outcome, wanted.reward);
    if one.answer != wanted.answer || !(unjudged || same_verdict) {
        findings.report(format!(
            "{key:?} {}: {:?}, reward {}, {:?}; without faults it is {:?}, reward {}, {:?}",
            one.task, one.outcome, one.reward, one.answer, wanted.outcome, wanted.reward, wanted.answer
        ));
    }
}

fn compare(findings: &Findings, key: Key, before: &Finished, now: Option<&Finished>) {
    match now {
        None => findings.report(format!("{key:?} {} was finished and is missing now", before.task)),
        Some(now) if now.content != before.content => {
            findings.report(format!("{key:?} {} was finished and has changed since", before.task));
        }
        Some(_) => {}
    }
}

fn watch_disk(
    mut disk: Disk,
    findings: &Findings,
    stop: &AtomicBool,
    seen: &Mutex<BTreeMap<Key, Finished>>,
    baseline: &Baseline,
) {
    let mut failures = 0;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(250));
        let result = disk.finished();
        let mut seen = seen.lock().unwrap();
        let problem = match &result {
            Err(error) => Some(error.clone()),
            Ok(now) => {
                seen.keys().find(|key| !now.contains_key(key)).map(|key| format!("{key:?} is missing"))
            }
        };
        if let Some(reason) = problem {
            failures += 1;
            disk.forget();
            if failures > MAX_FAILED_CHECKS {
                findings.report(format!("cannot read the finished trajectories: {reason}"));
            }
            continue;
        }
        failures = 0;
        findings.disk_checks.fetch_add(1, Ordering::Relaxed);
        for (key, one) in result.unwrap_or_default() {
            if let Some(before) = seen.get(&key) {
                compare(findings, key, before, Some(&one));
                continue;
            }
            check_verdict(findings, key, &one, baseline);
            seen.insert(key, one);
        }
        findings.finished.store(seen.len(), Ordering::Relaxed);
    }
}

async fn watch_slots(url: String, findings: Arc<Findings>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        // A node that does not respond cannot report wrong numbers.
        if let Ok(slots) = slots_of(&url).await {
            findings.slot_checks.fetch_add(1, Ordering::Relaxed);
            if !slots.is_consistent() || slots.capacity != crate::system::SLOTS_PER_NODE {
                findings.report(format!("the slots of {url} do not add up: {slots:?}"));
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Reports orphaned processes and files that are not cleaned up in time.
fn watch_processes(watched: &Watched, findings: &Findings, stop: &AtomicBool) {
    let mut since: BTreeMap<String, Instant> = BTreeMap::new();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(500));
        let now: BTreeSet<String> = orphans::find(watched).into_iter().collect();
        since.retain(|orphan, _| now.contains(orphan));
        for orphan in now {
            let first_seen = *since.entry(orphan.clone()).or_insert_with(Instant::now);
            if first_seen.elapsed() > CLEANUP_TIMEOUT {
                findings.report(format!("for more than {CLEANUP_TIMEOUT:?}: {orphan}"));
            }
        }
        findings.process_checks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reports what is left after everything has ended: processes, temporary files, sockets in the file system.
pub(crate) async fn check_leftovers(system: &System, findings: &Findings) {
    let end = Instant::now() + CLEANUP_TIMEOUT;
    loop {
        let mut left = orphans::remaining_processes();
        for service in system.services() {
            left.extend(entries(&service.temporary).iter().map(|path| path.display().to_string()));
        }
        let expected = |path: &PathBuf| *path == system.folder || system.existing.contains(path);
        for root in ["/tmp", "/dev/shm"] {
            let strays = entries(root.as_ref()).into_iter().filter(|path| !expected(path));
            left.extend(strays.map(|path| path.display().to_string()));
        }
        if left.is_empty() {
            return;
        }
        if Instant::now() > end {
            return left.into_iter().for_each(|one| findings.report(format!("left at the end: {one}")));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
