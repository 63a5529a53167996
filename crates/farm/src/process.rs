//! Looks at the process table: how much memory a browser's tree holds, and how many processes it is; and at what
//! this process itself may hold.

use std::{collections::HashMap, fs};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setpriority_process, setrlimit,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) processes: usize,
    pub(crate) resident_bytes: u64,
}

/// One process of a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) pid: u32,
    pub(crate) group: u32,
    pub(crate) resident_bytes: u64,
    /// CPU time it has used so far, in clock ticks.
    pub(crate) ticks: u64,
}

/// All processes of these groups, in one pass over the process table.
pub(crate) fn members(groups: &[u32]) -> Vec<Member> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Member::read).filter(|member| groups.contains(&member.group)).collect()
}

/// What each group holds together.
pub(crate) fn footprints(members: &[Member]) -> HashMap<u32, Footprint> {
    let mut found: HashMap<u32, Footprint> = HashMap::new();
    for member in members {
        let print = found.entry(member.group).or_default();
        print.processes += 1;
        print.resident_bytes += member.resident_bytes;
    }
    found
}

/// What a Chromium process is there for: `renderer`, `gpu-process`, …; `browser` for the first.
pub(crate) fn kind(pid: u32) -> String {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command);
    let kind = command.split(['\0', ' ']).find_map(|word| word.strip_prefix("--type="));
    kind.unwrap_or("browser").to_owned()
}

impl Member {
    fn read(pid: u32) -> Option<Self> {
        parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Its number still means the same process.
    fn still_there(&self) -> Option<Pid> {
        let same = Self::read(self.pid).is_some_and(|now| now.group == self.group && now.ticks >= self.ticks);
        Pid::from_raw(self.pid.cast_signed()).filter(|_| same)
    }

    pub(crate) fn end(&self) {
        if let Some(pid) = self.still_there() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// From now on it gets what CPU time others leave over.
    pub(crate) fn slow_down(&self) {
        const LAST: i32 = 19;
        let Some(_) = self.still_there() else { return };
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        let threads = threads.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        for thread in threads {
            let _ = setpriority_process(Some(thread), LAST);
        }
    }
}

/// Takes all the file descriptors we may have, and tells how many that is.
pub(crate) fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "the limit of open files stays as it is");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The name in parentheses may hold anything, so count from its end.
fn parse_stat(pid: u32, stat: &str) -> Option<Member> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let page = rustix::param::page_size() as u64;
    Some(Member {
        pid,
        group: fields.get(2)?.parse().ok()?,
        ticks: number(11)? + number(12)?,
        resident_bytes: number(21)? * page,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_process_name_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 1000000 321 18446744073709551615";
        let page = rustix::param::page_size() as u64;
        let read = Member { pid: 42, group: 77, ticks: 5 + 6, resident_bytes: 321 * page };
        assert_eq!(parse_stat(42, stat), Some(read));
        assert_eq!(parse_stat(42, "garbage"), None);
    }

    #[test]
    fn our_own_group_has_a_footprint() {
        let group = rustix::process::getpgrp().as_raw_nonzero().get().cast_unsigned();
        let members = members(&[group]);
        let own = footprints(&members)[&group];
        assert!(own.processes >= 1 && own.resident_bytes > 1 << 20, "{own:?}");
        let we = members.iter().find(|one| one.pid == std::process::id()).expect("we are in it");
        assert!(we.still_there().is_some() && kind(we.pid) == "browser");
        let other = Member { group: group + 1, ..*we };
        assert!(other.still_there().is_none(), "a number that was given to somebody else");
    }
}
