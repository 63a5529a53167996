//! Measures bare Chromium without a server (the upper limit) and the farm over HTTP in one run on one machine: speed,
//! memory, start-up time and leases. Owns the workload and the measurements; the measured programs run in other
//! processes.

mod bare;
mod compare;
mod farm_process;
mod gate;
mod machine;
mod master;
mod network;
mod process_tree;
mod report;
mod scaling;
mod sections;
mod sim_node;
mod stats;
mod workers;
mod workload;

use std::path::PathBuf;

pub use compare::{Change, compare, differences};
pub use report::{Better, Metric, Report};
pub use sections::Section;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("bare Chromium: {0}")]
    Bare(String),
    #[error("the farm: {0}")]
    Farm(String),
    #[error("cannot start {what}: {reason}")]
    Start { what: String, reason: String },
    #[error("{path}: {reason}", path = path.display())]
    File { path: PathBuf, reason: String },
}

/// The options of a benchmark run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `webgym` executable to measure.
    pub webgym: PathBuf,
    pub executable: cdp::Executable,
    pub instances: usize,
    /// Duration of each measurement after its warm-up.
    pub seconds: f64,
    pub repeats: usize,
    pub sections: Vec<Section>,
}

/// Runs the benchmark. `progress` is called with a description of each measurement.
pub async fn run(options: &Options, progress: &dyn Fn(&str)) -> Result<Report, BenchError> {
    let mut report = Report::new(machine::describe(options), options);
    for section in &options.sections {
        section.measure(options, &mut report, progress).await?;
    }
    Ok(report)
}
