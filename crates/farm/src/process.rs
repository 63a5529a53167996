//! Looks at the process table: how much memory a browser's tree holds, and how many processes it is; and at what
//! this process itself may hold.

use std::{collections::HashMap, fs};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) processes: usize,
    pub(crate) resident_bytes: u64,
}

/// The footprints of these process groups, in one pass over the process table.
pub(crate) fn footprints(groups: &[u32]) -> HashMap<u32, Footprint> {
    let mut found: HashMap<u32, Footprint> =
        groups.iter().map(|group| (*group, Footprint::default())).collect();
    let Ok(entries) = fs::read_dir("/proc") else { return found };
    let page = rustix::param::page_size() as u64;
    for entry in entries.flatten() {
        let is_pid = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        let stat = is_pid.then(|| fs::read_to_string(entry.path().join("stat")).ok()).flatten();
        let Some((group, resident_pages)) = stat.as_deref().and_then(parse_stat) else { continue };
        if let Some(print) = found.get_mut(&group) {
            print.processes += 1;
            print.resident_bytes += resident_pages * page;
        }
    }
    found
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

/// Process group and resident pages. The name in parentheses may hold anything, so count from its end.
fn parse_stat(stat: &str) -> Option<(u32, u64)> {
    let rest = stat.rsplit_once(')')?.1;
    let mut fields = rest.split_ascii_whitespace();
    let group = fields.nth(2)?.parse().ok()?;
    let pages = fields.nth(18)?.parse().ok()?;
    Some((group, pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_process_name_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 1000000 321 18446744073709551615";
        assert_eq!(parse_stat(stat), Some((77, 321)));
        assert_eq!(parse_stat("garbage"), None);
    }

    #[test]
    fn our_own_group_has_a_footprint() {
        let group = rustix::process::getpgrp().as_raw_nonzero().get() as u32;
        let own = footprints(&[group])[&group];
        assert!(own.processes >= 1 && own.resident_bytes > 1 << 20, "{own:?}");
    }
}
