//! Describes the machine and the versions that a measurement depends on.

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::Options;

pub(crate) fn describe(options: &Options) -> Value {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "date": jiff::Timestamp::now().to_string(),
        "webgym": env!("CARGO_PKG_VERSION"),
        "browser": version(&options.executable.path),
        "browser_kind": options.executable.kind.to_string(),
        "cores": cores,
        "cpu": proc_field("/proc/cpuinfo", "model name"),
        "memory_kib": proc_field("/proc/meminfo", "MemTotal").split(' ').next().and_then(|kib| kib.parse::<u64>().ok()),
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "load_at_start": fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next(),
    })
}

fn version(program: &std::path::Path) -> String {
    let output = Command::new(program).arg("--version").output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// The value of a `name: value` line in a file of `/proc`.
fn proc_field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}
