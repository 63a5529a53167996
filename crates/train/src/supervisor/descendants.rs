//! The descendants of this process, which includes orphans: the supervisor is their reaper.

use std::time::{Duration, Instant};

use procfs::process::{Process, all_processes};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// How long processes may take to end by themselves after the program. Helpers of browsers remove their profiles in this time.
const SELF_CLEANUP_TIME: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running descendant.
#[derive(Clone, Debug)]
pub(super) struct Descendant {
    pub(super) pid: i32,
    pub(super) group: i32,
    pub(super) name: String,
}

/// Returns the running descendants of this process, without zombies.
pub(super) fn running() -> Vec<Descendant> {
    let all: Vec<(i32, i32, i32, char, String)> =
        all_processes().into_iter().flatten().flatten().filter_map(|process| read(&process)).collect();
    let mut ancestors = vec![std::process::id().cast_signed()];
    let mut next = 0;
    while let Some(parent) = ancestors.get(next).copied() {
        ancestors.extend(all.iter().filter(|(_, of, ..)| *of == parent).map(|(pid, ..)| *pid));
        next += 1;
    }
    let is_running = |state: char| !matches!(state, 'Z' | 'X');
    all.into_iter()
        .filter(|(pid, _, _, state, _)| ancestors[1..].contains(pid) && is_running(*state))
        .map(|(pid, _, group, _, name)| Descendant { pid, group, name })
        .collect()
}

fn read(process: &Process) -> Option<(i32, i32, i32, char, String)> {
    let stat = process.stat().ok()?;
    Some((stat.pid, stat.ppid, stat.pgrp, stat.state, format!("{} (process {})", stat.comm, stat.pid)))
}

fn signal(pid: i32, number: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, number);
    }
}

fn signal_all(number: Signal, is_meant: impl Fn(&Descendant) -> bool) {
    for one in running().into_iter().filter(is_meant) {
        signal(one.pid, number);
    }
}

/// Collects the exit status of ended children, so that they do not stay as zombies.
pub(super) fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Returns the names of the descendants that do not end by themselves.
pub(super) fn left_behind() -> Vec<String> {
    if wait_until_none(SELF_CLEANUP_TIME) {
        return Vec::new();
    }
    running().into_iter().map(|one| one.name).collect()
}

/// Ends all descendants: asks them, kills the program's group after `grace`, and everything else shortly after that.
pub(super) fn end_all(program_group: Option<i32>, grace: Duration) {
    signal_all(Signal::TERM, |_| true);
    if wait_until_none(grace) {
        return;
    }
    signal_all(Signal::KILL, |one| Some(one.group) == program_group);
    if wait_until_none(SELF_CLEANUP_TIME) {
        return;
    }
    // A process can start another one while the list is read, so this is repeated until the list is empty.
    loop {
        signal_all(Signal::KILL, |_| true);
        if wait_until_none(POLL_INTERVAL * 5) {
            return;
        }
    }
}

/// Ends descendants that a killed supervisor left to this process.
pub(super) fn end_orphans() {
    let own = std::process::id().cast_signed();
    let orphans = |one: &Descendant| {
        let stat = Process::new(one.pid).and_then(|process| process.stat());
        stat.is_ok_and(|stat| stat.ppid == own && !is_supervisor(one.pid))
    };
    // Children of orphans are reparented when those are killed, so this is repeated.
    let end = Instant::now() + SELF_CLEANUP_TIME;
    while Instant::now() < end {
        let found: Vec<Descendant> = running().into_iter().filter(orphans).collect();
        if found.is_empty() {
            return;
        }
        for one in found {
            signal(one.pid, Signal::KILL);
            if let Some(pid) = Pid::from_raw(one.pid) {
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
            }
        }
    }
}

fn is_supervisor(pid: i32) -> bool {
    let command = Process::new(pid).and_then(|process| process.cmdline()).unwrap_or_default();
    command.get(1).is_some_and(|argument| argument == super::SUBCOMMAND)
}

fn wait_until_none(limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        reap();
        if running().is_empty() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
