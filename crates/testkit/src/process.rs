//! Reads the process table: parents and groups, browsers and their profiles.

use std::path::{Path, PathBuf};

use procfs::net::TcpState;
use rustix::process::{Pid, Signal, kill_process};

#[derive(Clone, Debug)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub zombie: bool,
    pub command: Vec<String>,
}

/// A Chromium started by `webgym`: its main process, its process group and its profile.
#[derive(Clone, Debug)]
pub struct Browser {
    pub pid: u32,
    pub group: u32,
    pub profile: PathBuf,
}

fn read(process: &procfs::process::Process) -> Option<Process> {
    let stat = process.stat().ok()?;
    // Chromium separates its children's command lines by spaces instead of zeros.
    let command = process.cmdline().ok()?.join(" ");
    let command = command.split(' ').filter(|argument| !argument.is_empty()).map(str::to_owned).collect();
    Some(Process {
        pid: stat.pid.cast_unsigned(),
        parent: stat.ppid.cast_unsigned(),
        group: stat.pgrp.cast_unsigned(),
        zombie: matches!(stat.state, 'Z' | 'X'),
        command,
    })
}

/// Returns all processes, including zombies.
pub fn processes() -> Vec<Process> {
    let all = procfs::process::all_processes().into_iter().flatten().flatten();
    all.filter_map(|process| read(&process)).collect()
}

/// Returns the processes of a group without zombies, which hold no resources.
fn group(id: u32) -> Vec<Process> {
    processes().into_iter().filter(|process| process.group == id && !process.zombie).collect()
}

/// Returns everything that `pid` started, directly or not, including zombies.
pub fn descendants(pid: u32) -> Vec<Process> {
    let all = processes();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(all.iter().filter(|process| process.parent == parent).map(|process| process.pid));
        next += 1;
    }
    all.into_iter().filter(|process| process.pid != pid && found.contains(&process.pid)).collect()
}

/// Describes the running processes that have this text in their command line.
pub(crate) fn processes_naming(text: &str) -> Vec<String> {
    let names = |process: &Process| !process.zombie && process.command.iter().any(|word| word.contains(text));
    let found = processes().into_iter().filter(names);
    found.map(|process| format!("{} {}", process.pid, process.command.join(" "))).collect()
}

/// Counts the connections that the server on this loopback port holds, including those the client has closed.
pub fn open_connections(port: u16) -> usize {
    let connections = procfs::net::tcp().unwrap_or_default();
    let is_open = |state: &TcpState| matches!(state, TcpState::Established | TcpState::CloseWait);
    connections.iter().filter(|one| one.local_address.port() == port && is_open(&one.state)).count()
}

/// Returns the browsers that a `webgym` process runs.
pub fn browsers_of(pid: u32) -> Vec<Browser> {
    let all = processes();
    let reapers = all.iter().filter(|process| process.parent == pid && process.pid == process.group);
    // Debian starts Chromium through a shell script that waits for it. The browser itself is the process that has no
    // child with the same profile.
    let browser_of = |reaper: &Process| {
        let mut members = all.iter().filter(|process| process.group == reaper.pid && !process.zombie);
        members.find_map(|process| {
            let profile = process.profile()?;
            let is_script = all.iter().any(|child| child.parent == process.pid && child.profile().is_some());
            (!is_script).then_some(Browser { pid: process.pid, group: reaper.pid, profile })
        })
    };
    reapers.filter_map(browser_of).collect()
}

impl Process {
    fn profile(&self) -> Option<PathBuf> {
        let is_main = !self.command.iter().any(|argument| argument.starts_with("--type="));
        let profile = self.command.iter().find_map(|argument| argument.strip_prefix("--user-data-dir="));
        profile.filter(|_| is_main).map(Into::into)
    }

    pub fn is_renderer(&self) -> bool {
        self.command.iter().any(|word| word == "--type=renderer")
    }
}

impl Browser {
    pub fn processes(&self) -> Vec<Process> {
        group(self.group)
    }

    pub fn renderers(&self) -> Vec<Process> {
        self.processes().into_iter().filter(Process::is_renderer).collect()
    }

    /// No process and no file of it is left.
    pub fn is_gone(&self) -> bool {
        self.processes().is_empty() && !Path::new(&self.profile).exists()
    }
}

/// Returns whether every thread of the process is stopped.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let Ok(process) = procfs::process::Process::new(pid.cast_signed()) else { return false };
    let Ok(mut threads) = process.tasks() else { return false };
    threads.all(|thread| thread.and_then(|thread| thread.stat()).is_ok_and(|stat| stat.state == 'T'))
}

/// Sends a signal to a process that the test started, directly or not.
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    // The process may have exited already.
    let _ = kill_process(pid, signal);
}
