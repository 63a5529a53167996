//! Who belongs to nobody. The process table is our own, so whatever is neither a service nor started by one is left over
//! from one that died; the same holds for profile folders that no browser uses and connections that nobody closes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use testkit::{Process, processes};

use crate::{evidence::entries, world::World};

/// What to look at: the hosts' names and the folders in which the nodes keep profiles.
pub(crate) struct Watched {
    temporary: Vec<PathBuf>,
}

impl Watched {
    pub(crate) fn of(world: &World) -> Self {
        Self { temporary: world.nodes.iter().map(|node| node.temporary.clone()).collect() }
    }
}

/// Each finding in words that stay the same while it lasts.
pub(crate) fn now(watched: &Watched) -> Vec<String> {
    let all = processes();
    let mut found = adopted(&all);
    found.extend(zombies(&all));
    found.extend(unused_profiles(watched, &all));
    found.extend(half_closed(&all));
    found
}

/// Everything but the first process, ourselves and whoever looks after our children for a moment.
pub(crate) fn strangers() -> Vec<String> {
    let own = std::process::id();
    processes()
        .into_iter()
        .filter(|one| one.pid != 1 && one.pid != own)
        .map(|one| told("runs", &one))
        .collect()
}

fn told(what: &str, process: &Process) -> String {
    let words: String = process.command.join(" ").chars().take(160).collect();
    format!("process {} {what}: {words}", process.pid)
}

/// Those whose parent died, unless they belong to the group of a process that somebody still looks after.
fn adopted(all: &[Process]) -> Vec<String> {
    let own = std::process::id();
    let parents: BTreeMap<u32, u32> = all.iter().map(|one| (one.pid, one.parent)).collect();
    let ours = |pid: u32| {
        let mut pid = pid;
        while let Some(parent) = parents.get(&pid) {
            if *parent == own {
                return true;
            }
            pid = *parent;
        }
        false
    };
    let lone = all.iter().filter(|one| one.parent == 1 && one.pid != own && !one.zombie && !ours(one.group));
    lone.map(|one| told("has no parent", one)).collect()
}

/// Ended processes that their parent does not reap. A living Chromium keeps its own until it ends.
fn zombies(all: &[Process]) -> Vec<String> {
    let command: BTreeMap<u32, &Process> = all.iter().map(|one| (one.pid, one)).collect();
    let chromium = |pid: u32| {
        command
            .get(&pid)
            .is_some_and(|one| one.command.iter().any(|word| word.starts_with("--user-data-dir=")))
    };
    let kept =
        all.iter().filter(|one| one.zombie && one.parent != std::process::id() && !chromium(one.parent));
    kept.map(|one| format!("process {} has ended and {} does not reap it", one.pid, one.parent)).collect()
}

fn unused_profiles(watched: &Watched, all: &[Process]) -> Vec<String> {
    let in_use: BTreeSet<PathBuf> = all
        .iter()
        .filter(|one| !one.zombie)
        .flat_map(|one| &one.command)
        .filter_map(|word| word.strip_prefix("--user-data-dir="))
        .map(PathBuf::from)
        .collect();
    let used =
        |path: &PathBuf| in_use.iter().any(|profile| profile.starts_with(path) || path.starts_with(profile));
    let folders = watched.temporary.iter().flat_map(|folder| entries(folder));
    folders.filter(|path| !used(path)).map(|path| format!("{} is nobody's", path.display())).collect()
}

/// Connections of our services whose other end has hung up and that are not closed. Chromium's are its own affair.
fn half_closed(all: &[Process]) -> Vec<String> {
    const CLOSE_WAIT: &str = "08";
    let own = std::process::id();
    let mut found = BTreeSet::new();
    for service in all.iter().filter(|one| one.parent == own && !one.zombie) {
        let held: BTreeSet<String> = entries(format!("/proc/{}/fd", service.pid).as_ref())
            .iter()
            .filter_map(|path| Some(std::fs::read_link(path).ok()?.to_string_lossy().into_owned()))
            .collect();
        let table = std::fs::read_to_string(format!("/proc/{}/net/tcp", service.pid)).unwrap_or_default();
        for row in table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>()) {
            let inode = row.get(9).map(|inode| format!("socket:[{inode}]")).unwrap_or_default();
            if row.get(3) == Some(&CLOSE_WAIT) && held.contains(&inode) {
                found.insert(format!("process {} does not close {} – {}", service.pid, row[1], row[2]));
            }
        }
    }
    found.into_iter().collect()
}
