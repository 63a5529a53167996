//! Measures CPU and memory of a process tree from `/proc`, separately for our own processes and for each kind of
//! browser process. The CPU time of ended processes counts with the process that waited for them.

use std::{collections::HashMap, fs, path::Path};

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

    /// Classifies a browser process by its `--type` argument. Child processes may separate arguments by spaces
    /// instead of NUL bytes.
    fn of(command_line: &str) -> Self {
        match command_line.split(['\0', ' ']).find_map(|argument| argument.strip_prefix("--type=")) {
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

struct Process {
    pid: u32,
    parent: u32,
    /// Its own CPU time in ticks.
    own_ticks: u64,
    /// The CPU time of the processes it has waited for, in ticks.
    waited_ticks: u64,
}

fn read_process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let parent = u32::try_from(number(1)?).ok()?;
    // utime and stime, cutime and cstime
    let (own_ticks, waited_ticks) = (number(11)? + number(12)?, number(13)? + number(14)?);
    Some(Process { pid, parent, own_ticks, waited_ticks })
}

/// A process and all its descendants.
#[derive(Clone, Debug)]
pub(crate) struct ProcessTree {
    root: u32,
    /// Roots of subtrees that are not counted.
    excluded: Vec<u32>,
}

impl ProcessTree {
    pub(crate) fn of(root: u32) -> Self {
        Self { root, excluded: Vec::new() }
    }

    /// The tree of this process without some subtrees.
    pub(crate) fn current(excluded: Vec<u32>) -> Self {
        Self { root: std::process::id(), excluded }
    }

    /// CPU seconds so far. Ended processes count as the kind of the process that waited for them, except that those
    /// of the browser process count as pages.
    pub(crate) fn cpu(&self) -> PerKind {
        const TICKS_PER_SECOND: f64 = 100.0;
        self.sum(|process, kind| {
            let waited_kind = if kind == Kind::Browser { Kind::Pages } else { kind };
            [
                (kind, process.own_ticks as f64 / TICKS_PER_SECOND),
                (waited_kind, process.waited_ticks as f64 / TICKS_PER_SECOND),
            ]
        })
    }

    /// Memory in MiB (PSS: shared pages are divided among the processes that share them).
    pub(crate) fn memory(&self) -> PerKind {
        self.sum(|process, kind| {
            let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
            let kib: f64 =
                line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0);
            [(kind, kib / 1024.0)]
        })
    }

    fn sum<const N: usize>(&self, values: impl Fn(&Process, Kind) -> [(Kind, f64); N]) -> PerKind {
        let (mut sums, own_program) = (PerKind::default(), executable(self.root));
        for process in self.processes() {
            for (kind, value) in values(&process, kind_of(process.pid, self.root, own_program.as_deref())) {
                sums.0[kind as usize] += value;
            }
        }
        sums
    }

    fn processes(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all: Vec<Process> = entries
            .filter_map(|entry| read_process(entry.file_name().to_str()?.parse().ok()?))
            .filter(|process| !self.excluded.contains(&process.pid))
            .collect();
        let mut children: HashMap<u32, Vec<usize>> = HashMap::new();
        for (index, process) in all.iter().enumerate() {
            children.entry(process.parent).or_default().push(index);
        }
        let root = all.iter().position(|process| process.pid == self.root);
        let mut members: Vec<usize> = root.into_iter().collect();
        let mut next = 0;
        while let Some(index) = members.get(next).copied() {
            members.extend(children.get(&all[index].pid).into_iter().flatten());
            next += 1;
        }
        let mut all: Vec<Option<Process>> = all.into_iter().map(Some).collect();
        members.into_iter().filter_map(|index| all[index].take()).collect()
    }
}

/// Our own processes run the same executable as the root, or are reapers of browsers.
fn kind_of(pid: u32, root: u32, own_program: Option<&Path>) -> Kind {
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command_line = String::from_utf8_lossy(&command_line);
    let is_ours = pid == root
        || own_program.is_some() && executable(pid).as_deref() == own_program
        || command_line.split('\0').any(|argument| argument == "webgym-reaper");
    if is_ours { Kind::Ours } else { Kind::of(&command_line) }
}

fn executable(pid: u32) -> Option<std::path::PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_processes_are_classified_by_type() {
        let of = Kind::of;
        assert_eq!(of("/usr/lib/chromium/chromium --headless"), Kind::Browser);
        assert_eq!(of("chromium\0--type=gpu-process\0--x\0"), Kind::Gpu);
        assert_eq!(of("chromium --type=zygote --no-zygote-sandbox"), Kind::Pages);
        assert_eq!(of("chromium --type=renderer --lang=en"), Kind::Pages);
        assert_eq!(of("chromium --type=gpu-process"), Kind::Gpu);
        assert_eq!(of("chromium --type=utility --utility-sub-type=network"), Kind::Services);
    }

    #[test]
    fn child_is_counted_before_and_after_it_ends() {
        let tree = ProcessTree::current(Vec::new());
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
        let without_child = ProcessTree::current(vec![child.id()]);
        assert!(without_child.memory().of(Kind::Browser) < 0.1, "excluded processes are not counted");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(tree.cpu().since(before).total() >= running.total(), "its CPU time still counts");
    }
}
