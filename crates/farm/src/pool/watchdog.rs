//! Decides what to do about browser processes that use too much memory or CPU. A renderer belongs to one tenant, so
//! killing it costs only that lease. A process that all tenants of a browser share is killed only if killing the
//! busiest renderers did not help. Pure: it gets measurements and returns actions.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use crate::process::BrowserProcess;

/// Above these limits a process uses too much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessLimits {
    /// Bytes; 0 means no limit.
    memory: u64,
    /// CPU time between two checks, in clock ticks.
    ticks: u64,
}

/// What to do about a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchdogAction {
    Kill { process: BrowserProcess, reason: &'static str },
    Throttle { process: BrowserProcess, reason: &'static str },
}

#[derive(Default)]
pub(crate) struct Watchdog {
    processes: HashMap<u32, ProcessRecord>,
    /// Process groups of browsers whose shared processes use too much memory.
    oversized: HashMap<u32, Relief>,
}

struct ProcessRecord {
    is_renderer: bool,
    /// CPU time at the last check, in clock ticks.
    ticks: u64,
    /// Consecutive checks in which it exceeded the CPU limit.
    busy_checks: u32,
}

/// What was done about a browser whose shared processes use too much memory.
#[derive(Default)]
struct Relief {
    killed: u32,
    /// Checks to wait before the next kill.
    pause: u32,
}

/// A page may saturate one core; it is throttled above 1.25 cores for five checks.
const MAX_CORES: f64 = 1.25;
const MAX_BUSY_CHECKS: u32 = 5;
/// Checks to wait for memory to be freed after a kill.
const CHECKS_AFTER_KILL: u32 = 3;
/// How many renderers are killed before the shared process itself.
const MAX_RENDERER_KILLS: u32 = 2;

const RENDERER_TOO_LARGE: &str = "it uses more memory than a page may";
const BUSIEST_RENDERER: &str = "its browser uses too much memory, and it was the busiest page";
const SHARED_TOO_LARGE: &str = "it uses too much memory for all its pages together";
const TOO_BUSY: &str = "it keeps more than one CPU busy";

impl ProcessLimits {
    pub(crate) fn new(memory: u64, interval: Duration) -> Self {
        let ticks = interval.as_secs_f64() * procfs::ticks_per_second() as f64;
        Self { memory, ticks: (ticks * MAX_CORES) as u64 }
    }
}

impl Watchdog {
    /// Returns the processes whose type is already known.
    pub(crate) fn known_pids(&self) -> HashSet<u32> {
        self.processes.keys().copied().collect()
    }

    /// Checks all processes of all browsers; `types` has the type of each process seen for the first time.
    pub(crate) fn check(
        &mut self,
        processes: &[BrowserProcess],
        types: Vec<(u32, String)>,
        limits: &ProcessLimits,
    ) -> Vec<WatchdogAction> {
        for (pid, process_type) in types {
            let is_renderer = process_type == "renderer";
            // All CPU time so far counts as used since the last check: a page may fill the memory before its first one.
            self.processes.insert(pid, ProcessRecord { is_renderer, ticks: 0, busy_checks: 0 });
        }
        let alive: HashSet<u32> = processes.iter().map(|process| process.pid).collect();
        self.processes.retain(|pid, _| alive.contains(pid));
        let mut actions = self.check_memory(processes, limits);
        actions.extend(processes.iter().filter_map(|process| self.check_cpu(process, limits)));
        for process in processes {
            if let Some(record) = self.processes.get_mut(&process.pid) {
                record.ticks = process.ticks;
            }
        }
        actions
    }

    fn is_renderer(&self, process: &BrowserProcess) -> bool {
        self.processes.get(&process.pid).is_some_and(|record| record.is_renderer)
    }

    /// Returns the CPU time used since the last check.
    fn used_ticks(&self, process: &BrowserProcess) -> u64 {
        self.processes.get(&process.pid).map_or(0, |record| process.ticks.saturating_sub(record.ticks))
    }

    fn check_memory(&mut self, processes: &[BrowserProcess], limits: &ProcessLimits) -> Vec<WatchdogAction> {
        let is_large =
            |process: &&BrowserProcess| limits.memory > 0 && process.resident_bytes > limits.memory;
        let (renderers, shared): (Vec<&BrowserProcess>, Vec<&BrowserProcess>) =
            processes.iter().filter(is_large).partition(|process| self.is_renderer(process));
        let oversized: HashSet<u32> = shared.iter().map(|process| process.group).collect();
        self.oversized.retain(|group, _| oversized.contains(group));
        let kill =
            |process: &BrowserProcess| WatchdogAction::Kill { process: *process, reason: RENDERER_TOO_LARGE };
        let mut actions: Vec<WatchdogAction> = renderers.into_iter().map(kill).collect();
        for process in shared {
            actions.extend(self.relieve(process, processes));
        }
        actions
    }

    /// Kills the busiest renderer first: filling the memory of a shared process takes CPU time.
    fn relieve(&mut self, large: &BrowserProcess, processes: &[BrowserProcess]) -> Option<WatchdogAction> {
        let renderers =
            processes.iter().filter(|process| process.group == large.group && self.is_renderer(process));
        let busiest = renderers.max_by_key(|process| self.used_ticks(process)).copied();
        let relief = self.oversized.entry(large.group).or_default();
        if relief.pause > 0 {
            relief.pause -= 1;
            return None;
        }
        relief.pause = CHECKS_AFTER_KILL;
        relief.killed += 1;
        Some(match busiest {
            Some(busiest) if relief.killed <= MAX_RENDERER_KILLS => {
                WatchdogAction::Kill { process: busiest, reason: BUSIEST_RENDERER }
            }
            _ => WatchdogAction::Kill { process: *large, reason: SHARED_TOO_LARGE },
        })
    }

    fn check_cpu(&mut self, process: &BrowserProcess, limits: &ProcessLimits) -> Option<WatchdogAction> {
        let is_busy = self.is_renderer(process) && self.used_ticks(process) > limits.ticks;
        let record = self.processes.get_mut(&process.pid)?;
        record.busy_checks = if is_busy { record.busy_checks.saturating_add(1) } else { 0 };
        let is_limit_reached = record.busy_checks == MAX_BUSY_CHECKS;
        is_limit_reached.then_some(WatchdogAction::Throttle { process: *process, reason: TOO_BUSY })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ProcessLimits = ProcessLimits { memory: 1000, ticks: 300 };
    const BROWSER: usize = 0;
    const FIRST_PAGE: usize = 1;
    const SECOND_PAGE: usize = 2;

    /// A browser process (pid 10) and two renderers (11, 12).
    struct TestBrowser {
        watchdog: Watchdog,
        processes: Vec<BrowserProcess>,
    }

    impl TestBrowser {
        fn new() -> Self {
            let process = |pid| BrowserProcess { pid, group: 1, resident_bytes: 100, ticks: 0 };
            let processes = [10, 11, 12].map(process).to_vec();
            let mut browser = Self { watchdog: Watchdog::default(), processes };
            let types = [(10, "browser"), (11, "renderer"), (12, "renderer")];
            let types = types.map(|(pid, name)| (pid, name.to_owned())).to_vec();
            assert_eq!(browser.watchdog.check(&browser.processes, types, &LIMITS), []);
            assert_eq!(browser.watchdog.known_pids().len(), 3);
            browser
        }

        fn check(&mut self) -> Vec<(u32, &'static str)> {
            let actions = self.watchdog.check(&self.processes, Vec::new(), &LIMITS);
            let described = actions.into_iter().map(|action| match action {
                WatchdogAction::Kill { process, reason } | WatchdogAction::Throttle { process, reason } => {
                    (process.pid, reason)
                }
            });
            described.collect()
        }
    }

    #[test]
    fn only_the_large_renderer_is_killed() {
        let mut browser = TestBrowser::new();
        browser.processes[SECOND_PAGE].resident_bytes = 1001;
        assert_eq!(browser.check(), [(12, RENDERER_TOO_LARGE)]);
        let unlimited = ProcessLimits { memory: 0, ..LIMITS };
        assert_eq!(browser.watchdog.check(&browser.processes, Vec::new(), &unlimited), []);
    }

    #[test]
    fn large_browser_loses_its_busiest_renderers_first() {
        let mut browser = TestBrowser::new();
        browser.processes[BROWSER].resident_bytes = 1001;
        browser.processes[FIRST_PAGE].ticks = 50;
        browser.processes[SECOND_PAGE].ticks = 10;
        assert_eq!(browser.check(), [(11, BUSIEST_RENDERER)]);
        browser.processes.remove(FIRST_PAGE);
        for _ in 0..CHECKS_AFTER_KILL {
            assert_eq!(browser.check(), [], "memory is freed slowly");
        }
        assert_eq!(browser.check(), [(12, BUSIEST_RENDERER)]);
        for _ in 0..CHECKS_AFTER_KILL {
            assert_eq!(browser.check(), []);
        }
        assert_eq!(browser.check(), [(10, SHARED_TOO_LARGE)]);
    }

    #[test]
    fn busiest_renderer_is_known_at_the_first_check() {
        let process = |pid, resident_bytes, ticks| BrowserProcess { pid, group: 1, resident_bytes, ticks };
        let processes = [process(10, 1001, 40), process(11, 100, 90), process(12, 100, 2)];
        let types = [(10, "browser"), (11, "renderer"), (12, "renderer")];
        let types = types.map(|(pid, name)| (pid, name.to_owned())).to_vec();
        let actions = Watchdog::default().check(&processes, types, &LIMITS);
        assert_eq!(actions, [WatchdogAction::Kill { process: processes[1], reason: BUSIEST_RENDERER }]);
    }

    #[test]
    fn recovered_browser_starts_with_a_clean_record() {
        let mut browser = TestBrowser::new();
        browser.processes[BROWSER].resident_bytes = 1001;
        browser.processes[SECOND_PAGE].ticks = 10;
        assert_eq!(browser.check(), [(12, BUSIEST_RENDERER)]);
        browser.processes[BROWSER].resident_bytes = 100;
        assert_eq!(browser.check(), []);
        browser.processes[BROWSER].resident_bytes = 1001;
        browser.processes[FIRST_PAGE].ticks = 10;
        assert_eq!(browser.check(), [(11, BUSIEST_RENDERER)]);
    }

    #[test]
    fn busy_renderer_is_throttled_once() {
        let mut browser = TestBrowser::new();
        for check in 1..=MAX_BUSY_CHECKS + 3 {
            browser.processes[FIRST_PAGE].ticks += 301;
            browser.processes[SECOND_PAGE].ticks += 300;
            browser.processes[BROWSER].ticks += 900;
            let expected = if check == MAX_BUSY_CHECKS { vec![(11, TOO_BUSY)] } else { Vec::new() };
            assert_eq!(browser.check(), expected, "check {check}");
        }
    }
}
