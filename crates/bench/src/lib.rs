//! What everything costs, measured side by side in one run on one machine: bare Chromium without a server (the limit), the
//! farm over HTTP, memory, start-up, lease churn. Owns the load and the meters; measures programs, never itself.

mod bare;
mod compare;
mod crowd;
mod facts;
mod farm;
mod gate;
mod load;
mod master;
mod meter;
mod report;
mod sections;
mod sim_node;
mod stats;
mod window;

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
    #[error("cannot start {what}: {why}")]
    Start { what: String, why: String },
    #[error("{path}: {why}", path = path.display())]
    File { path: PathBuf, why: String },
}

/// How to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `webgym` to measure.
    pub webgym: PathBuf,
    pub executable: cdp::Executable,
    pub instances: usize,
    /// How long each measurement lasts, after its warm-up.
    pub seconds: f64,
    pub repeats: usize,
    pub sections: Vec<Section>,
}

/// Measures; `tell` hears what is being done.
pub async fn run(options: &Options, tell: &dyn Fn(&str)) -> Result<Report, BenchError> {
    let mut report = Report::new(facts::of_this_machine(options), options);
    for section in &options.sections {
        section.measure(options, &mut report, tell).await?;
    }
    Ok(report)
}
