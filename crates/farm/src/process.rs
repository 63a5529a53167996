//! Reads the process table: memory, CPU time and number of the processes of each browser. Also raises the limits of
//! this process.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::Read,
};

use procfs::process::Process;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setpriority_process, setrlimit,
};

/// What a browser's process group uses in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) processes: usize,
    pub(crate) resident_bytes: u64,
}

/// One process of a browser, as last measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrowserProcess {
    pub(crate) pid: u32,
    pub(crate) group: u32,
    pub(crate) resident_bytes: u64,
    /// CPU time used so far, in clock ticks.
    pub(crate) ticks: u64,
}

/// Lists all processes of these process groups. A farm of 256 instances does this for 600 processes every two seconds, so
/// it reads one small file for each and parses only what is needed.
pub(crate) fn list_processes(groups: &[u32]) -> Vec<BrowserProcess> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let groups: HashSet<u32> = groups.iter().copied().collect();
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(BrowserProcess::measure).filter(|process| groups.contains(&process.group)).collect()
}

/// Sums up what each process group uses.
pub(crate) fn footprints(processes: &[BrowserProcess]) -> HashMap<u32, Footprint> {
    let mut footprints: HashMap<u32, Footprint> = HashMap::new();
    for process in processes {
        let footprint = footprints.entry(process.group).or_default();
        footprint.processes += 1;
        footprint.resident_bytes += process.resident_bytes;
    }
    footprints
}

/// Returns the type of a Chromium process: `renderer`, `gpu-process`, …; `browser` for the main process.
pub(crate) fn process_type(pid: u32) -> String {
    let command = Process::new(pid.cast_signed()).and_then(|process| process.cmdline()).unwrap_or_default();
    // A renderer overwrites its command line, after which the arguments are separated by spaces.
    let mut arguments = command.iter().flat_map(|argument| argument.split(' '));
    arguments.find_map(|argument| argument.strip_prefix("--type=")).unwrap_or("browser").to_owned()
}

impl BrowserProcess {
    fn measure(pid: u32) -> Option<Self> {
        let mut stat = [0; 1024];
        let length = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
        Self::from_stat(pid, &stat[..length])
    }

    /// Parses `/proc/PID/stat` (see `proc_pid_stat(5)`).
    fn from_stat(pid: u32, stat: &[u8]) -> Option<Self> {
        // The name may contain anything, also parentheses and spaces. The fields after it are numbered from 3.
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields: Vec<&str> =
            std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let (group, user_time, system_time, resident_pages) = (field(5)?, field(14)?, field(15)?, field(24)?);
        Some(Self {
            pid,
            group: u32::try_from(group).ok()?,
            ticks: user_time + system_time,
            resident_bytes: resident_pages * procfs::page_size(),
        })
    }

    /// Returns the process id, unless it belongs to another process by now.
    fn current_pid(&self) -> Option<Pid> {
        let now = Self::measure(self.pid)?;
        let is_same = now.group == self.group && now.ticks >= self.ticks;
        Pid::from_raw(self.pid.cast_signed()).filter(|_| is_same)
    }

    pub(crate) fn kill(&self) {
        if let Some(pid) = self.current_pid() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Lets the process run only when the CPU has nothing else to do.
    pub(crate) fn lower_priority(&self) {
        const LOWEST_PRIORITY: i32 = 19;
        if self.current_pid().is_none() {
            return;
        }
        let Ok(threads) = Process::new(self.pid.cast_signed()).and_then(|process| process.tasks()) else {
            return;
        };
        for thread in threads.flatten().filter_map(|thread| Pid::from_raw(thread.tid)) {
            let _ = setpriority_process(Some(thread), LOWEST_PRIORITY);
        }
    }
}

/// Raises the limit of open files as far as allowed, and returns it.
pub(crate) fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "cannot raise the limit of open files");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(stat: &str) -> Option<BrowserProcess> {
        BrowserProcess::from_stat(42, stat.as_bytes())
    }

    #[test]
    fn hostile_process_name_does_not_shift_fields() {
        let stat = "42 (a) b (c) S 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 1000000 321 18446744073709551615 \
                    1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0";
        let resident_bytes = 321 * procfs::page_size();
        let expected = BrowserProcess { pid: 42, group: 77, ticks: 5 + 6, resident_bytes };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(parse("garbage"), None);
    }

    #[test]
    fn own_process_group_has_a_footprint() {
        let group = rustix::process::getpgrp().as_raw_nonzero().get().cast_unsigned();
        let processes = list_processes(&[group]);
        let own = footprints(&processes)[&group];
        assert!(own.processes >= 1 && own.resident_bytes > 1 << 20, "{own:?}");
        let this = processes.iter().find(|process| process.pid == std::process::id()).expect("this process");
        assert!(this.current_pid().is_some() && process_type(this.pid) == "browser");
        let other = BrowserProcess { group: group + 1, ..*this };
        assert!(other.current_pid().is_none(), "the id belongs to another process");
    }
}
