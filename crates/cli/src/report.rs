//! What a run says when it is over: the iteration's file, its metrics as a table and as JSON, and the same for
//! TensorBoard.

use std::path::Path;

use rollout::run::tensorboard::EventFile;
use serde_json::json;
use store::{
    IterationId, SavePath,
    metrics::{self, MetricsReport},
};

/// Who is told how a run went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Audience {
    /// A table, and a line of JSON that a program can pick out.
    #[default]
    Everyone,
    Programs,
    People,
}

/// Turns the journal into the iteration's file and tells how it went.
pub(crate) fn finish(save_path: &SavePath, id: IterationId, audience: Audience) -> anyhow::Result<()> {
    let journal = save_path.journal(id);
    let finished = store::finish_iteration(save_path, id)?;
    rollout::plan::forget_choice(&journal);
    // A rank tells of what it collected itself; the merged iteration is told of by who merges it.
    let report = metrics::of_file(save_path, id)?;
    if id.rank.is_none() {
        note_for_tensorboard(save_path.root(), id, &report);
    }
    if audience != Audience::Programs {
        println!("{report}");
    }
    if audience == Audience::People {
        return Ok(());
    }
    let summary = json!({
        "event": "finished", "file": finished.path, "trajectories": finished.trajectories, "split": id.split.to_string(),
        "iteration": id.iteration, "metrics": report.breakdown.overall,
    });
    println!("{summary}");
    Ok(())
}

/// A curve that cannot be written costs no trajectory.
pub(crate) fn note_for_tensorboard(root: &Path, id: IterationId, report: &MetricsReport) {
    if let Err(error) = to_tensorboard(root, id, report) {
        tracing::warn!(%error, "the metrics could not be written for TensorBoard");
    }
}

fn to_tensorboard(root: &Path, id: IterationId, report: &MetricsReport) -> std::io::Result<()> {
    let value = serde_json::to_value(&report.breakdown.overall).map_err(std::io::Error::other)?;
    let numbers = value.as_object().into_iter().flatten();
    let scalars: Vec<(String, f64)> =
        numbers.filter_map(|(name, value)| Some((format!("{}/{name}", id.split), value.as_f64()?))).collect();
    EventFile::create(&root.join("tensorboard"))?.scalars(i64::try_from(id.iteration).unwrap_or(0), &scalars)
}
