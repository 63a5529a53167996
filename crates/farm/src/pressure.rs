//! Is the machine under so much pressure that a new tenant would hurt the others? Reads the kernel's own figures.

use std::fs;

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
        Self {
            memory_available_percent: memory_available(&memory).unwrap_or(100.0),
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
    fn objections_name_what_is_short() {
        let reading = Reading { memory_available_percent: 3.0, cpu_stalled_percent: 80.0 };
        assert!(reading.objection(4.0, 0.0).unwrap().contains("memory"));
        assert!(reading.objection(1.0, 70.0).unwrap().contains("CPU"));
        assert_eq!(reading.objection(1.0, 0.0), None);
    }
}
