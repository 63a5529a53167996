//! Looks at the process table: how much memory a browser's tree holds, and how many processes it is.

use std::fs;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) processes: usize,
    pub(crate) resident_bytes: u64,
}

/// The footprint of every process in the group.
pub(crate) fn footprint(group: u32) -> Footprint {
    let Ok(entries) = fs::read_dir("/proc") else { return Footprint::default() };
    let page = rustix::param::page_size() as u64;
    let mut total = Footprint::default();
    for entry in entries.flatten() {
        let is_pid = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        let Some(stat) = is_pid.then(|| fs::read_to_string(entry.path().join("stat")).ok()).flatten() else {
            continue;
        };
        let Some((process_group, resident_pages)) = parse_stat(&stat) else { continue };
        if process_group == group {
            total.processes += 1;
            total.resident_bytes += resident_pages * page;
        }
    }
    total
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
        let own = footprint(group);
        assert!(own.processes >= 1 && own.resident_bytes > 1 << 20, "{own:?}");
    }
}
