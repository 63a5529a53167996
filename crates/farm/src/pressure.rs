//! Is the machine under so much pressure that a new tenant would hurt the others? Reads the kernel's own figures,
//! for the machine and for the container we may be in.

use std::{
    fs,
    path::{Path, PathBuf},
};

const CGROUPS: &str = "/sys/fs/cgroup";

/// What the kernel says about memory and CPU right now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) memory_available_percent: f64,
    /// Share of the last 10 seconds in which something waited for a CPU.
    pub(crate) cpu_stalled_percent: f64,
}

impl Reading {
    pub(crate) fn take() -> Self {
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let cpu = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
        let machine = memory_available(&memory).unwrap_or(100.0);
        Self {
            memory_available_percent: container_available().fold(machine, f64::min),
            cpu_stalled_percent: cpu_stalled(&cpu).unwrap_or(0.0),
        }
    }

    /// Why no new lease should be given now, if so.
    pub(crate) fn objection(&self, min_memory: f64, max_cpu: f64) -> Option<String> {
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

fn memory_available(meminfo: &str) -> Option<f64> {
    let field = |name: &str| -> Option<f64> {
        let line = meminfo.lines().find(|line| line.starts_with(name))?;
        line.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let total = field("MemTotal:")?;
    (total > 0.0).then_some(100.0 * field("MemAvailable:")? / total)
}

/// What is left of the memory limits of the container, and of those around it.
fn container_available() -> impl Iterator<Item = f64> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own =
        own.lines().find_map(|line| line.strip_prefix("0::/")).map(|path| Path::new(CGROUPS).join(path));
    let around =
        own.into_iter().flat_map(|own| own.ancestors().map(Path::to_owned).collect::<Vec<PathBuf>>());
    around.take_while(|folder| folder.starts_with(CGROUPS)).filter_map(|folder| {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        limit_available(&read("memory.max")?, &read("memory.current")?, &read("memory.stat")?)
    })
}

/// Pages of files that nobody has used lately are given up before anything else suffers.
fn limit_available(most: &str, current: &str, stat: &str) -> Option<f64> {
    let most: f64 = most.trim().parse().ok().filter(|most| *most > 0.0)?;
    let current: f64 = current.trim().parse().ok()?;
    let spare = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let spare: f64 = spare.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0.0);
    Some((100.0 * (most - current + spare) / most).clamp(0.0, 100.0))
}

fn cpu_stalled(pressure: &str) -> Option<f64> {
    let line = pressure.lines().find(|line| line.starts_with("some"))?;
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let meminfo = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    250 kB\n";
        assert_eq!(memory_available(meminfo), Some(25.0));
        let pressure = "some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(cpu_stalled(pressure), Some(12.5));
    }

    #[test]
    fn a_containers_limit_counts_less_what_can_be_given_up() {
        assert_eq!(limit_available("1000\n", "900\n", "anon 600\ninactive_file 150\n"), Some(25.0));
        assert_eq!(limit_available("max\n", "900\n", ""), None);
    }

    #[test]
    fn objections_name_what_is_short() {
        let reading = Reading { memory_available_percent: 3.0, cpu_stalled_percent: 80.0 };
        assert!(reading.objection(4.0, 0.0).unwrap().contains("memory"));
        assert!(reading.objection(1.0, 70.0).unwrap().contains("CPU"));
        assert_eq!(reading.objection(1.0, 0.0), None);
    }
}
