//! Reports a finished run: writes the iteration file, prints its metrics as a table and as JSON, and adds them to
//! TensorBoard.

use std::path::Path;

use rollout::run::tensorboard::EventFile;
use serde_json::json;
use store::{
    IterationId, SavePath,
    metrics::{self, MetricsReport},
};

/// The format in which a finished run is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// A table, and one line of JSON for programs.
    #[default]
    TextAndJson,
    Json,
    Text,
}

/// Converts the journal to the iteration file and reports the metrics.
pub(crate) fn finish(save_path: &SavePath, id: IterationId, format: ReportFormat) -> anyhow::Result<()> {
    let journal = save_path.journal(id);
    if id.rank.is_some() && !journal.exists() && save_path.iteration_file(id.with_rank(None)).exists() {
        tracing::info!("another rank has merged the trajectories of this rank already");
        return Ok(());
    }
    let finished = store::finish_iteration(save_path, id)?;
    rollout::plan::remove_selection_file(&journal);
    // A rank reports only what it collected itself; rank 0 reports the merged iteration.
    let report = metrics::of_summaries(id, &finished.summaries);
    if id.rank.is_none() {
        write_tensorboard(save_path.root(), id, &report);
    }
    if format != ReportFormat::Json {
        println!("{report}");
    }
    if format == ReportFormat::Text {
        return Ok(());
    }
    let summary = json!({
        "event": "finished", "file": finished.path, "trajectories": finished.summaries.len(), "split": id.split.to_string(),
        "iteration": id.iteration, "metrics": report.breakdown.overall,
    });
    println!("{summary}");
    Ok(())
}

/// Adds the metrics to TensorBoard. An error is only logged, because the trajectories are already saved.
pub(crate) fn write_tensorboard(root: &Path, id: IterationId, report: &MetricsReport) {
    if let Err(error) = append_scalars(root, id, report) {
        tracing::warn!(%error, "cannot write the metrics for TensorBoard");
    }
}

fn append_scalars(root: &Path, id: IterationId, report: &MetricsReport) -> std::io::Result<()> {
    let value = serde_json::to_value(&report.breakdown.overall).map_err(std::io::Error::other)?;
    let numbers = value.as_object().into_iter().flatten();
    let scalars: Vec<(String, f64)> =
        numbers.filter_map(|(name, value)| Some((format!("{}/{name}", id.split), value.as_f64()?))).collect();
    EventFile::create(&root.join("tensorboard"))?
        .append_scalars(i64::try_from(id.iteration).unwrap_or(0), &scalars)
}
