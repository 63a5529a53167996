//! The state of a run, built from its events: one cell per task, counts, rates, latencies and the latest failures. Readers
//! such as the progress bar, the watchdog and the monitor take snapshots.

mod pace;
mod run_state;
mod trace;

pub use pace::{Latency, Pace};
pub use run_state::{Cell, RunState, Timing, Totals};
pub use trace::{StepSummary, TaskInfo, Trace};
