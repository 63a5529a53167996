//! Looks from outside, all the time: at the files of the run, at the slots that the nodes tell, at the process table and
//! the temporary files. Knows nothing of what is being done to the system, and says what it found wrong.

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
    world::{World, slots_of},
};

/// What may be gone for a moment while files change names must be back by so many looks later.
const LOOKS_AGAIN: usize = 4;
/// Cleaning up after a death takes the guards a moment, on a loaded machine a longer one.
const LINGERS: Duration = Duration::from_secs(20);

/// Task → what an undisturbed run made of it.
pub(crate) type Calm = BTreeMap<String, Finished>;

#[derive(Default)]
pub(crate) struct Findings {
    wrong: Mutex<BTreeSet<String>>,
    pub(crate) finished: AtomicUsize,
    pub(crate) disk_looks: AtomicUsize,
    pub(crate) slot_looks: AtomicUsize,
    pub(crate) process_looks: AtomicUsize,
}

impl Findings {
    pub(crate) fn is_wrong(&self, what: String) {
        let mut wrong = self.wrong.lock().unwrap();
        if !wrong.contains(&what) {
            eprintln!("WRONG: {what}");
            wrong.insert(what);
        }
    }

    pub(crate) fn wrong(&self) -> Vec<String> {
        self.wrong.lock().unwrap().iter().cloned().collect()
    }
}

pub(crate) struct Checker {
    pub(crate) findings: Arc<Findings>,
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
    /// Everything that was ever seen finished.
    seen: Arc<Mutex<BTreeMap<Key, Finished>>>,
    calm: Arc<Calm>,
    root: PathBuf,
}

impl Checker {
    pub(crate) fn start(world: &World, root: PathBuf, calm: Calm) -> Self {
        let findings: Arc<Findings> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let seen: Arc<Mutex<BTreeMap<Key, Finished>>> = Arc::default();
        let calm = Arc::new(calm);
        let mut tasks = Vec::new();
        for url in world.node_urls() {
            tasks.push(tokio::spawn(slots_add_up(url, Arc::clone(&findings), Arc::clone(&stop))));
        }
        let (told, until, kept, right) =
            (Arc::clone(&findings), Arc::clone(&stop), Arc::clone(&seen), Arc::clone(&calm));
        let disk = Disk::new(root.clone());
        tasks.push(tokio::task::spawn_blocking(move || watch_disk(disk, &told, &until, &kept, &right)));
        let watched = Watched::of(world);
        let (told, until) = (Arc::clone(&findings), Arc::clone(&stop));
        tasks.push(tokio::task::spawn_blocking(move || watch_processes(&watched, &told, &until)));
        Self { findings, stop, tasks, seen, calm, root }
    }

    pub(crate) fn finished(&self) -> usize {
        self.findings.finished.load(Ordering::Relaxed)
    }

    /// Ends the looking, then reads everything once more from the first byte to the last.
    pub(crate) async fn end(self, tasks: usize) -> Summary {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("the checker goes on");
        }
        let findings = &self.findings;
        let mut disk = Disk::new(self.root.clone());
        let last = disk.finished().unwrap_or_else(|why| {
            findings.is_wrong(format!("at the end: {why}"));
            BTreeMap::new()
        });
        let seen = self.seen.lock().unwrap().clone();
        for (key, before) in &seen {
            compare(findings, *key, before, last.get(key));
        }
        for (key, one) in &last {
            judge_fairly(findings, *key, one, &self.calm);
        }
        let unjudged = last.values().filter(|one| one.outcome == Some(Outcome::JudgeError)).count();
        let mut runs: BTreeMap<u64, usize> = BTreeMap::new();
        for (iteration, _) in last.keys() {
            *runs.entry(*iteration).or_default() += 1;
        }
        for (iteration, count) in runs.iter().filter(|(_, count)| **count != tasks) {
            findings.is_wrong(format!("iteration {iteration} has {count} of {tasks} trajectories"));
        }
        match disk.litter() {
            Ok(litter) => litter.into_iter().for_each(|path| findings.is_wrong(format!("left over: {path}"))),
            Err(why) => findings.is_wrong(why),
        }
        Summary { finished: last.len(), runs: runs.len(), unjudged, findings: Arc::clone(findings) }
    }
}

/// How it was at the end.
pub(crate) struct Summary {
    pub(crate) finished: usize,
    pub(crate) runs: usize,
    pub(crate) unjudged: usize,
    pub(crate) findings: Arc<Findings>,
}

/// The verdict of an undisturbed run, or none at all for want of a judge.
fn judge_fairly(findings: &Findings, key: Key, one: &Finished, calm: &Calm) {
    let Some(wanted) = calm.get(&one.task) else {
        return findings.is_wrong(format!("{key:?}: nobody asked for {}", one.task));
    };
    let unjudged = one.outcome == Some(Outcome::JudgeError);
    let same_verdict = (one.outcome, one.reward) == (wanted.outcome, wanted.reward);
    if one.answer != wanted.answer || !(unjudged || same_verdict) {
        findings.is_wrong(format!(
            "{key:?} {}: {:?}, reward {}, {:?}; undisturbed it is {:?}, reward {}, {:?}",
            one.task, one.outcome, one.reward, one.answer, wanted.outcome, wanted.reward, wanted.answer
        ));
    }
}

fn compare(findings: &Findings, key: Key, before: &Finished, now: Option<&Finished>) {
    match now {
        None => findings.is_wrong(format!("{key:?} {} was finished and is gone", before.task)),
        Some(now) if now.content != before.content => {
            findings.is_wrong(format!("{key:?} {} was finished and has changed", before.task));
        }
        Some(_) => {}
    }
}

fn watch_disk(
    mut disk: Disk,
    findings: &Findings,
    stop: &AtomicBool,
    seen: &Mutex<BTreeMap<Key, Finished>>,
    calm: &Calm,
) {
    let mut failures = 0;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(250));
        let looked = disk.finished();
        let mut seen = seen.lock().unwrap();
        let problem = match &looked {
            Err(why) => Some(why.clone()),
            Ok(now) => seen.keys().find(|key| !now.contains_key(key)).map(|key| format!("{key:?} is gone")),
        };
        if let Some(why) = problem {
            failures += 1;
            disk.forget();
            if failures > LOOKS_AGAIN {
                findings.is_wrong(format!("what is finished cannot be read: {why}"));
            }
            continue;
        }
        failures = 0;
        findings.disk_looks.fetch_add(1, Ordering::Relaxed);
        for (key, one) in looked.unwrap_or_default() {
            if let Some(before) = seen.get(&key) {
                compare(findings, key, before, Some(&one));
                continue;
            }
            judge_fairly(findings, key, &one, calm);
            seen.insert(key, one);
        }
        findings.finished.store(seen.len(), Ordering::Relaxed);
    }
}

async fn slots_add_up(url: String, findings: Arc<Findings>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        // Who does not answer says nothing wrong.
        if let Ok(slots) = slots_of(&url).await {
            findings.slot_looks.fetch_add(1, Ordering::Relaxed);
            if !slots.add_up() || slots.capacity != crate::world::SLOTS {
                findings.is_wrong(format!("the slots of {url} do not add up: {slots:?}"));
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Whatever belongs to nobody may linger for a moment, not longer.
fn watch_processes(watched: &Watched, findings: &Findings, stop: &AtomicBool) {
    let mut since: BTreeMap<String, Instant> = BTreeMap::new();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(500));
        let now: BTreeSet<String> = orphans::now(watched).into_iter().collect();
        since.retain(|what, _| now.contains(what));
        for what in now {
            let begun = *since.entry(what.clone()).or_insert_with(Instant::now);
            if begun.elapsed() > LINGERS {
                findings.is_wrong(format!("for more than {LINGERS:?}: {what}"));
            }
        }
        findings.process_looks.fetch_add(1, Ordering::Relaxed);
    }
}

/// What is left when everything has ended: processes, temporary files, sockets in the file system.
pub(crate) async fn after_the_end(world: &World, findings: &Findings) {
    let end = Instant::now() + LINGERS;
    loop {
        let mut left = orphans::strangers();
        for service in world.services() {
            left.extend(entries(&service.temporary).iter().map(|path| path.display().to_string()));
        }
        let ours = [world.folder.clone()];
        for root in ["/tmp", "/dev/shm"] {
            let strays = entries(root.as_ref()).into_iter().filter(|path| !ours.contains(path));
            left.extend(strays.map(|path| path.display().to_string()));
        }
        if left.is_empty() {
            return;
        }
        if Instant::now() > end {
            return left.into_iter().for_each(|what| findings.is_wrong(format!("left at the end: {what}")));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
