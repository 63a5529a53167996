//! Reads the process table: parents and groups, browsers and their profiles.

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

/// A Chromium started by `webgym`: its main process, its process group and its profile.
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
    // Chromium separates its children's command lines by spaces instead of zeros.
    let command = String::from_utf8_lossy(&command);
    let command = command.split(['\0', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    Some(Process { pid, parent, group, zombie, command })
}

/// Returns all processes, including zombies.
pub fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
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
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let stopped =
        |stat: String| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'));
    threads.flatten().all(|thread| fs::read_to_string(thread.path().join("stat")).is_ok_and(stopped))
}

/// Sends a signal to a process that the test started, directly or not.
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    // The process may have exited already.
    let _ = kill_process(pid, signal);
}
