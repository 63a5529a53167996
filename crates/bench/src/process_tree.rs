//! Measures CPU and memory of a process tree from `/proc`, separately for our own processes and for each kind of
//! browser process. The CPU time of ended processes counts with the process that waited for them.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use procfs::process::{Process, Stat, all_processes};

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    /// The browser's main process.
    Browser,
    /// Renderers, and the zygotes that fork and reap them.
    Pages,
    /// Composites and draws pages.
    Gpu,
    /// Network, storage and other services.
    Services,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Ours, Self::Browser, Self::Pages, Self::Gpu, Self::Services];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "our own processes",
            Self::Browser => "browser",
            Self::Pages => "pages",
            Self::Gpu => "drawing",
            Self::Services => "network and services",
        }
    }

    /// Classifies a browser process by its `--type` argument. Child processes may have all arguments in one string,
    /// separated by spaces.
    fn of(arguments: &[String]) -> Self {
        let mut arguments = arguments.iter().flat_map(|argument| argument.split(' '));
        match arguments.find_map(|argument| argument.strip_prefix("--type=")) {
            Some("renderer" | "zygote") => Self::Pages,
            Some("gpu-process") => Self::Gpu,
            Some(_) => Self::Services,
            None => Self::Browser,
        }
    }
}

/// A value for each kind of process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PerKind([f64; Kind::ALL.len()]);

impl PerKind {
    pub(crate) fn of(self, kind: Kind) -> f64 {
        self.0[kind as usize]
    }

    pub(crate) fn total(self) -> f64 {
        self.0.iter().sum()
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind] - earlier.0[kind]))
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind] + other.0[kind]))
    }
}

/// A process and all its descendants.
#[derive(Clone, Debug)]
pub(crate) struct ProcessTree {
    root: i32,
    /// Roots of subtrees, and process groups, that are not counted.
    excluded: Vec<i32>,
}

impl ProcessTree {
    pub(crate) fn of(root: u32) -> Self {
        Self { root: root.cast_signed(), excluded: Vec::new() }
    }

    /// The tree of this process without some subtrees and process groups.
    pub(crate) fn current(excluded: &[u32]) -> Self {
        let excluded = excluded.iter().map(|pid| pid.cast_signed()).collect();
        Self { excluded, ..Self::of(std::process::id()) }
    }

    /// CPU seconds so far. Ended processes count as the kind of the process that waited for them, except that those
    /// of the browser process count as pages.
    pub(crate) fn cpu(&self) -> PerKind {
        let seconds = |ticks: f64| ticks / procfs::ticks_per_second() as f64;
        self.sum(|stat, kind| {
            let waited_kind = if kind == Kind::Browser { Kind::Pages } else { kind };
            [
                (kind, seconds((stat.utime + stat.stime) as f64)),
                (waited_kind, seconds((stat.cutime + stat.cstime) as f64)),
            ]
        })
    }

    /// Memory in MiB (PSS: shared pages are divided among the processes that share them).
    pub(crate) fn memory(&self) -> PerKind {
        self.sum(|stat, kind| {
            let rollup = Process::new(stat.pid).and_then(|process| process.smaps_rollup());
            let maps = rollup.map(|rollup| rollup.memory_map_rollup.0).unwrap_or_default();
            let bytes: u64 = maps.iter().filter_map(|map| map.extension.map.get("Pss")).sum();
            [(kind, bytes as f64 / f64::from(1 << 20))]
        })
    }

    fn sum<const N: usize>(&self, values: impl Fn(&Stat, Kind) -> [(Kind, f64); N]) -> PerKind {
        let (mut sums, own_program) = (PerKind::default(), executable(self.root));
        for stat in self.processes() {
            for (kind, value) in values(&stat, kind_of(stat.pid, self.root, own_program.as_deref())) {
                sums.0[kind as usize] += value;
            }
        }
        sums
    }

    fn processes(&self) -> Vec<Stat> {
        // A `Process` holds an open file, so only its `Stat` is kept.
        let all = all_processes().into_iter().flatten().flatten().filter_map(|process| process.stat().ok());
        let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
        let mut members = Vec::new();
        for stat in all.filter(|stat| ![stat.pid, stat.pgrp].iter().any(|id| self.excluded.contains(id))) {
            if stat.pid == self.root {
                members.push(stat);
            } else {
                children.entry(stat.ppid).or_default().push(stat);
            }
        }
        let mut next = 0;
        while let Some(parent) = members.get(next).map(|stat| stat.pid) {
            members.extend(children.remove(&parent).into_iter().flatten());
            next += 1;
        }
        members
    }
}

/// Our own processes run the same executable as the root, or are reapers of browsers.
fn kind_of(pid: i32, root: i32, own_program: Option<&Path>) -> Kind {
    let arguments = Process::new(pid).and_then(|process| process.cmdline()).unwrap_or_default();
    let is_ours = pid == root
        || own_program.is_some() && executable(pid).as_deref() == own_program
        || arguments.iter().any(|argument| argument == "webgym-reaper");
    if is_ours { Kind::Ours } else { Kind::of(&arguments) }
}

fn executable(pid: i32) -> Option<PathBuf> {
    Process::new(pid).and_then(|process| process.exe()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_processes_are_classified_by_type() {
        let of =
            |command_line: &str| Kind::of(&command_line.split('\0').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("/usr/lib/chromium/chromium --headless"), Kind::Browser);
        assert_eq!(of("chromium\0--type=gpu-process\0--x\0"), Kind::Gpu);
        assert_eq!(of("chromium --type=zygote --no-zygote-sandbox"), Kind::Pages);
        assert_eq!(of("chromium --type=renderer --lang=en"), Kind::Pages);
        assert_eq!(of("chromium --type=gpu-process"), Kind::Gpu);
        assert_eq!(of("chromium --type=utility --utility-sub-type=network"), Kind::Services);
    }

    #[test]
    fn child_is_counted_before_and_after_it_ends() {
        let tree = ProcessTree::current(&[]);
        let before = tree.cpu();
        let mut child = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read line"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
            .unwrap();
        let running = tree.cpu().since(before);
        assert!(running.of(Kind::Browser) > 0.0, "{running:?}");
        assert!(tree.memory().of(Kind::Browser) > 0.1 && tree.memory().of(Kind::Ours) > 1.0);
        let without_child = ProcessTree::current(&[child.id()]);
        assert!(without_child.memory().of(Kind::Browser) < 0.1, "excluded processes are not counted");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(tree.cpu().since(before).total() >= running.total(), "its CPU time still counts");
    }
}
