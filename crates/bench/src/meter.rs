//! CPU and memory of a whole process tree, read from `/proc`, apart for our own processes and each kind of the browser's.
//! Processes that have ended stay counted: whoever waited for them carries their time.

use std::{collections::HashMap, fs, path::Path};

/// What a process of a tree is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    /// The browser's main process.
    Browser,
    /// Pages, and the zygotes that fork and bury them.
    Pages,
    /// Composes and draws.
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

    /// Chromium tells its children what they are; they write their words anew, with blanks between them.
    fn of(words: &str) -> Self {
        match words.split(['\0', ' ']).find_map(|word| word.strip_prefix("--type=")) {
            Some("renderer" | "zygote") => Self::Pages,
            Some("gpu-process") => Self::Gpu,
            Some(_) => Self::Services,
            None => Self::Browser,
        }
    }
}

/// Of a tree, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Split([f64; Kind::ALL.len()]);

impl Split {
    pub(crate) fn of(self, kind: Kind) -> f64 {
        self.0[kind as usize]
    }

    pub(crate) fn total(self) -> f64 {
        self.0.iter().sum()
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind] - earlier.0[kind]))
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind] + other.0[kind]))
    }
}

struct Process {
    pid: u32,
    parent: u32,
    /// Of itself, in ticks.
    own: u64,
    /// Of those it has waited for.
    waited_for: u64,
}

fn read(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let parent = u32::try_from(number(1)?).ok()?;
    // utime, stime; cutime, cstime
    let (own, waited_for) = (number(11)? + number(12)?, number(13)? + number(14)?);
    Some(Process { pid, parent, own, waited_for })
}

/// A process and everything it started, directly or not.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: u32,
    /// Where other trees begin that hang from it too.
    without: Vec<u32>,
}

impl Tree {
    pub(crate) fn of(root: u32) -> Self {
        Self { root, without: Vec::new() }
    }

    /// Ours, without what stands for itself.
    pub(crate) fn own(without: Vec<u32>) -> Self {
        Self { root: std::process::id(), without }
    }

    /// CPU seconds so far. What a browser has waited for were its pages; elsewhere a process counts with whoever waited.
    pub(crate) fn cpu(&self) -> Split {
        const TICKS_A_SECOND: f64 = 100.0;
        self.sum(|process, kind| {
            let heir = if kind == Kind::Browser { Kind::Pages } else { kind };
            [(kind, process.own as f64 / TICKS_A_SECOND), (heir, process.waited_for as f64 / TICKS_A_SECOND)]
        })
    }

    /// Memory in MiB, shared pages divided among those that share them.
    pub(crate) fn memory(&self) -> Split {
        self.sum(|process, kind| {
            let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
            let kib: f64 = line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
            [(kind, kib / 1024.0)]
        })
    }

    fn sum<const N: usize>(&self, values: impl Fn(&Process, Kind) -> [(Kind, f64); N]) -> Split {
        let (mut split, ours) = (Split::default(), program(self.root));
        for process in self.processes() {
            for (kind, value) in values(&process, kind(process.pid, self.root, ours.as_deref())) {
                split.0[kind as usize] += value;
            }
        }
        split
    }

    fn processes(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all: Vec<Process> = entries
            .filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?))
            .filter(|process| !self.without.contains(&process.pid))
            .collect();
        let mut children: HashMap<u32, Vec<usize>> = HashMap::new();
        for (place, process) in all.iter().enumerate() {
            children.entry(process.parent).or_default().push(place);
        }
        let root = all.iter().position(|process| process.pid == self.root);
        let mut inside: Vec<usize> = root.into_iter().collect();
        let mut next = 0;
        while let Some(place) = inside.get(next).copied() {
            inside.extend(children.get(&all[place].pid).into_iter().flatten());
            next += 1;
        }
        let mut all: Vec<Option<Process>> = all.into_iter().map(Some).collect();
        inside.into_iter().filter_map(|place| all[place].take()).collect()
    }
}

/// Our own processes run our own program, or are the reaper processes of browsers.
fn kind(pid: u32, root: u32, ours: Option<&Path>) -> Kind {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    let is_ours = pid == root
        || ours.is_some() && program(pid).as_deref() == ours
        || words.split('\0').any(|word| word == "webgym-reaper");
    if is_ours { Kind::Ours } else { Kind::of(&words) }
}

fn program(pid: u32) -> Option<std::path::PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chromium_says_what_its_processes_are() {
        let of = Kind::of;
        assert_eq!(of("/usr/lib/chromium/chromium --headless"), Kind::Browser);
        assert_eq!(of("chromium\0--type=gpu-process\0--x\0"), Kind::Gpu);
        assert_eq!(of("chromium --type=zygote --no-zygote-sandbox"), Kind::Pages);
        assert_eq!(of("chromium --type=renderer --lang=en"), Kind::Pages);
        assert_eq!(of("chromium --type=gpu-process"), Kind::Gpu);
        assert_eq!(of("chromium --type=utility --utility-sub-type=network"), Kind::Services);
    }

    #[test]
    fn a_child_is_counted_while_it_lives_and_after() {
        let tree = Tree::own(Vec::new());
        let before = tree.cpu();
        let mut child = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read line"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut said)
            .unwrap();
        let alive = tree.cpu().since(before);
        assert!(alive.of(Kind::Browser) > 0.0, "{alive:?}");
        assert!(tree.memory().of(Kind::Browser) > 0.1 && tree.memory().of(Kind::Ours) > 1.0);
        let alone = Tree::own(vec![child.id()]);
        assert!(alone.memory().of(Kind::Browser) < 0.1, "what stands for itself is left out");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(tree.cpu().since(before).total() >= alive.total(), "its time stays");
    }
}
