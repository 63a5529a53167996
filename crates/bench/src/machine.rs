//! Describes the machine and the versions that a measurement depends on.

use std::{fs, process::Command};

use procfs::{CpuInfo, Current, LoadAverage, Meminfo};
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
        "cpu": CpuInfo::current().ok().and_then(|info| info.model_name(0).map(str::to_owned)).unwrap_or_default(),
        "memory_kib": Meminfo::current().ok().map(|memory| memory.mem_total / 1024),
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "load_at_start": LoadAverage::current().map(|load| format!("{:.2}", load.one)).unwrap_or_default(),
    })
}

fn version(program: &std::path::Path) -> String {
    let output = Command::new(program).arg("--version").output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
