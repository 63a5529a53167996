//! What a process uses, from `/proc`.

use procfs::process::Process;

/// CPU and memory of one process, without its children.
pub(crate) struct ProcessUsage {
    pub(crate) cpu_seconds: f64,
    /// Resident memory that belongs to the process alone: anonymous pages, not its program file.
    pub(crate) resident_kib: f64,
}

impl ProcessUsage {
    pub(crate) fn of(pid: u32) -> Self {
        let process = Process::new(pid.cast_signed()).expect("the process runs");
        let stat = process.stat().expect("the process runs");
        let status = process.status().expect("the process runs");
        Self {
            cpu_seconds: (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
            resident_kib: status.rssanon.expect("Linux 4.5 or newer") as f64,
        }
    }
}

/// Returns the load of the machine in the last minute.
pub(crate) fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}
