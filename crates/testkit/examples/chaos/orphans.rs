//! Finds orphans. The process table is isolated, so every process that is neither a service nor started by one is left
//! over from a service that died. The same holds for profile folders without a browser and half-closed connections.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use procfs::{
    net::TcpState,
    process::{FDInfo, FDTarget},
};
use testkit::{Process, processes};

use crate::{evidence::entries, system::System};

/// The folders in which the nodes keep browser profiles.
pub(crate) struct Watched {
    temporary: Vec<PathBuf>,
}

impl Watched {
    pub(crate) fn new(system: &System) -> Self {
        Self { temporary: system.nodes.iter().map(|node| node.temporary.clone()).collect() }
    }
}

/// Returns all current orphans. The text for an orphan stays the same as long as it exists.
pub(crate) fn find(watched: &Watched) -> Vec<String> {
    let all = processes();
    let mut found = without_parent(&all);
    found.extend(unreaped_zombies(&all));
    found.extend(unused_profiles(watched, &all));
    found.extend(half_closed(&all));
    found
}

/// Returns every process except the first one and this one.
pub(crate) fn remaining_processes() -> Vec<String> {
    let own = std::process::id();
    processes()
        .into_iter()
        .filter(|one| one.pid != 1 && one.pid != own)
        .map(|one| describe("runs", &one))
        .collect()
}

fn describe(state: &str, process: &Process) -> String {
    let command: String = process.command.join(" ").chars().take(160).collect();
    format!("process {} {state}: {command}", process.pid)
}

/// Returns processes whose parent died, unless their process group belongs to one of our descendants.
fn without_parent(all: &[Process]) -> Vec<String> {
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
    let orphans =
        all.iter().filter(|one| one.parent == 1 && one.pid != own && !one.zombie && !ours(one.group));
    orphans.map(|one| describe("has no parent", one)).collect()
}

/// Returns zombies whose parent does not reap them. Chromium reaps its own only when it exits.
fn unreaped_zombies(all: &[Process]) -> Vec<String> {
    let command: BTreeMap<u32, &Process> = all.iter().map(|one| (one.pid, one)).collect();
    let chromium = |pid: u32| {
        command
            .get(&pid)
            .is_some_and(|one| one.command.iter().any(|word| word.starts_with("--user-data-dir=")))
    };
    let kept =
        all.iter().filter(|one| one.zombie && one.parent != std::process::id() && !chromium(one.parent));
    kept.map(|one| format!("process {} is a zombie that {} does not reap", one.pid, one.parent)).collect()
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
    folders
        .filter(|path| !used(path))
        .map(|path| format!("{} belongs to no browser", path.display()))
        .collect()
}

/// Returns connections that the other end closed but our service did not. Those of Chromium are not counted.
fn half_closed(all: &[Process]) -> Vec<String> {
    let own = std::process::id();
    let mut found = BTreeSet::new();
    for service in all.iter().filter(|one| one.parent == own && !one.zombie) {
        let Ok(process) = procfs::process::Process::new(service.pid.cast_signed()) else { continue };
        let sockets: BTreeSet<u64> = process
            .fd()
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|descriptor| socket_inode(&descriptor))
            .collect();
        for connection in process.tcp().unwrap_or_default() {
            if connection.state == TcpState::CloseWait && sockets.contains(&connection.inode) {
                let (local, remote) = (connection.local_address, connection.remote_address);
                found.insert(format!("process {} does not close {local} – {remote}", service.pid));
            }
        }
    }
    found.into_iter().collect()
}

fn socket_inode(descriptor: &FDInfo) -> Option<u64> {
    match descriptor.target {
        FDTarget::Socket(inode) => Some(inode),
        _ => None,
    }
}
