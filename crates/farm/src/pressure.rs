//! Measures whether the machine, or the container we run in, is too short of memory or CPU for another tenant.

use std::{
    fs,
    path::{Path, PathBuf},
};

use procfs::{CpuPressure, Current, Meminfo, ProcResult, process::Process};

const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// The state of memory and CPU at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SystemPressure {
    pub(crate) memory_available_percent: f64,
    /// Share of the last 10 seconds in which some task waited for a CPU.
    pub(crate) cpu_stalled_percent: f64,
}

/// Reads the pressure. What cannot be read counts as no pressure; for memory, the first failure is logged.
#[derive(Default)]
pub(crate) struct PressureMeter {
    is_failure_logged: bool,
}

impl PressureMeter {
    pub(crate) fn read(&mut self) -> SystemPressure {
        let machine = self.or_no_pressure(machine_available(Meminfo::current()));
        SystemPressure {
            memory_available_percent: container_available().fold(machine, f64::min),
            cpu_stalled_percent: CpuPressure::current().map_or(0.0, |pressure| pressure.some.avg10.into()),
        }
    }

    fn or_no_pressure(&mut self, available: Result<f64, String>) -> f64 {
        available.unwrap_or_else(|reason| {
            if !std::mem::replace(&mut self.is_failure_logged, true) {
                tracing::warn!(
                    reason,
                    "cannot measure this machine's memory; leases are held back only by container limits"
                );
            }
            100.0
        })
    }
}

impl SystemPressure {
    /// Returns why no new lease should be granted now.
    pub(crate) fn overload(&self, min_memory: f64, max_cpu: f64) -> Option<String> {
        if self.memory_available_percent < min_memory {
            let available = self.memory_available_percent;
            return Some(format!(
                "only {available:.1} % of memory is available, below the limit of {min_memory} %"
            ));
        }
        if max_cpu > 0.0 && self.cpu_stalled_percent > max_cpu {
            let stalled = self.cpu_stalled_percent;
            return Some(format!(
                "tasks wait for a CPU {stalled:.0} % of the time, above the limit of {max_cpu} %"
            ));
        }
        None
    }
}

/// Returns the available memory of the machine in percent, or why it is unknown: the sandbox gVisor, for example, has a
/// `/proc/meminfo` that lacks fields.
fn machine_available(memory: ProcResult<Meminfo>) -> Result<f64, String> {
    let memory = memory.map_err(|error| format!("/proc/meminfo cannot be read: {error}"))?;
    match memory.mem_available {
        Some(available) if memory.mem_total > 0 => Ok(100.0 * available as f64 / memory.mem_total as f64),
        _ => Err("/proc/meminfo has no MemAvailable or no MemTotal".to_owned()),
    }
}

/// Returns what is left of each memory limit: of our cgroup, and of those that contain it.
fn container_available() -> impl Iterator<Item = f64> {
    let cgroups = Process::myself().and_then(|process| process.cgroups()).ok();
    let own = cgroups.and_then(|cgroups| {
        let unified = cgroups.into_iter().find(|cgroup| cgroup.hierarchy == 0)?;
        Some(Path::new(CGROUP_ROOT).join(unified.pathname.trim_start_matches('/')))
    });
    let folders =
        own.into_iter().flat_map(|own| own.ancestors().map(Path::to_owned).collect::<Vec<PathBuf>>());
    folders.take_while(|folder| folder.starts_with(CGROUP_ROOT)).filter_map(|folder| {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        limit_available(&read("memory.max")?, &read("memory.current")?, &read("memory.stat")?)
    })
}

/// Counts the inactive part of the page cache as available: the kernel frees it before anything else suffers.
fn limit_available(max: &str, current: &str, stat: &str) -> Option<f64> {
    let max: f64 = max.trim().parse().ok().filter(|max| *max > 0.0)?;
    let current: f64 = current.trim().parse().ok()?;
    let inactive = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let inactive: f64 = inactive.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0.0);
    Some((100.0 * (max - current + inactive) / max).clamp(0.0, 100.0))
}

#[cfg(test)]
mod tests {
    use procfs::FromRead;

    use super::*;

    #[test]
    fn kernel_files_are_parsed() {
        let meminfo = "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\nBuffers: 0 kB\nCached: 0 kB\n\
             SwapCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nDirty: 0 kB\n\
             Writeback: 0 kB\nMapped: 0 kB\nSlab: 0 kB\nCommitted_AS: 0 kB\nVmallocTotal: 0 kB\nVmallocUsed: 0 kB\n\
             VmallocChunk: 0 kB\n";
        assert_eq!(machine_available(Meminfo::from_read(meminfo.as_bytes())), Ok(25.0));
        let pressure = "some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        let stalled = CpuPressure::from_read(pressure.as_bytes()).unwrap().some.avg10;
        assert!((stalled - 12.5).abs() < f32::EPSILON, "{stalled}");
    }

    #[test]
    fn incomplete_meminfo_is_logged_as_no_pressure() {
        let incomplete = || machine_available(Meminfo::from_read(&b"MemTotal: 1000 kB\nMemFree: 1 kB\n"[..]));
        assert!(incomplete().unwrap_err().starts_with("/proc/meminfo cannot be read: "));
        let mut meter = PressureMeter::default();
        assert!(meter.or_no_pressure(Ok(25.0)) < 26.0 && !meter.is_failure_logged);
        assert!(meter.or_no_pressure(incomplete()) > 99.0 && meter.is_failure_logged);
    }

    #[test]
    fn page_cache_of_a_container_counts_as_available() {
        assert_eq!(limit_available("1000\n", "900\n", "anon 600\ninactive_file 150\n"), Some(25.0));
        assert_eq!(limit_available("max\n", "900\n", ""), None);
    }

    #[test]
    fn overload_names_the_scarce_resource() {
        let pressure = SystemPressure { memory_available_percent: 3.0, cpu_stalled_percent: 80.0 };
        assert!(pressure.overload(4.0, 0.0).unwrap().contains("memory"));
        assert!(pressure.overload(1.0, 70.0).unwrap().contains("CPU"));
        assert_eq!(pressure.overload(1.0, 0.0), None);
    }
}
