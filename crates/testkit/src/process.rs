//! The process table: who belongs to whom, which of them are browsers, and what they keep on disk.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal, kill_process};

#[derive(Clone, Debug)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub zombie: bool,
    pub command: Vec<String>,
}

/// A Chromium that `webgym` started: its first process, the group that holds the whole tree, and its profile.
#[derive(Clone, Debug)]
pub struct Browser {
    pub pid: u32,
    pub group: u32,
    pub profile: PathBuf,
}

fn read(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    // Chromium writes its children's command lines with spaces where others have zeros.
    let command = String::from_utf8_lossy(&command);
    let command = command.split(['\0', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    Some(Process { pid, parent, group, zombie, command })
}

/// Everything that runs here, zombies too.
pub fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The living processes of a group. Zombies have let go of everything but their number.
pub fn group(id: u32) -> Vec<Process> {
    processes().into_iter().filter(|process| process.group == id && !process.zombie).collect()
}

/// Everything that was started by `pid`, directly or not; zombies too.
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

/// The living processes that have this in their command line, for saying so.
pub(crate) fn processes_naming(text: &str) -> Vec<String> {
    let names = |process: &Process| !process.zombie && process.command.iter().any(|word| word.contains(text));
    let found = processes().into_iter().filter(names);
    found.map(|process| format!("{} {}", process.pid, process.command.join(" "))).collect()
}

/// The connections that whoever listens on this loopback port still holds, also those whose other end has hung up.
pub fn connections_at(port: u16) -> usize {
    const ESTABLISHED: &str = "01";
    const CLOSE_WAIT: &str = "08";
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let here = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| {
        row.get(1).is_some_and(|local| local.ends_with(&here))
            && row.get(3).is_some_and(|state| [ESTABLISHED, CLOSE_WAIT].contains(state))
    })
    .count()
}

/// The browsers a `webgym` runs right now. Debian starts them through a shell script that stays: what counts is the
/// browser behind it.
pub fn browsers_of(pid: u32) -> Vec<Browser> {
    let all = processes();
    let guards = all.iter().filter(|process| process.parent == pid && process.pid == process.group);
    // Debian starts Chromium through a shell that waits for it and may be killed without it: the browser is the one
    // that has no other on the same profile below it.
    let browser_of = |guard: &Process| {
        let mut members = all.iter().filter(|one| one.group == guard.pid && !one.zombie);
        members.find_map(|one| {
            let profile = one.profile()?;
            let below = all.iter().any(|child| child.parent == one.pid && child.profile().is_some());
            (!below).then_some(Browser { pid: one.pid, group: guard.pid, profile })
        })
    };
    guards.filter_map(browser_of).collect()
}

impl Process {
    fn profile(&self) -> Option<PathBuf> {
        let first = !self.command.iter().any(|word| word.starts_with("--type="));
        let given = self.command.iter().find_map(|word| word.strip_prefix("--user-data-dir="));
        given.filter(|_| first).map(Into::into)
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

    /// Nothing of it is left, neither processes nor files.
    pub fn is_gone(&self) -> bool {
        self.processes().is_empty() && !Path::new(&self.profile).exists()
    }
}

/// Every thread of the process is stopped.
pub(crate) fn stands_still(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let stopped =
        |stat: String| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'));
    threads.flatten().all(|thread| fs::read_to_string(thread.path().join("stat")).is_ok_and(stopped))
}

/// Sends a signal to one process that the test started, or that belongs to one.
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    // It may have ended by itself meanwhile, which is as good.
    let _ = kill_process(pid, signal);
}
