//! Lists the trajectory files of a save path with their counts.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::terminal_text::single_line;
use crate::iteration::IterationFile;
use crate::layout::{FileKind, FoundFile, SavePath, Split};
use crate::metrics::Metrics;
use crate::summary::Summary;

#[derive(Clone, Debug, Serialize)]
pub struct FileListing {
    pub path: PathBuf,
    pub split: Split,
    pub iteration: u64,
    pub rank: Option<u32>,
    /// "finished", "unfinished" or "set aside".
    pub state: &'static str,
    pub bytes: u64,
    pub trajectories: u64,
    /// Planned number of trajectories; only for journals.
    pub tasks: Option<u64>,
    pub steps: u64,
    pub success_rate: f64,
    /// The reason why the file cannot be read, if any.
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    pub files: Vec<FileListing>,
}

/// Lists the files of both splits. Unreadable files are listed with their problem.
pub fn list(save_path: &SavePath) -> std::io::Result<Listing> {
    let mut files = Vec::new();
    for split in Split::ALL {
        for found in save_path.files(split)? {
            files.push(describe(&found));
        }
    }
    Ok(Listing { files })
}

fn describe(found: &FoundFile) -> FileListing {
    let mut listing = FileListing {
        path: found.path.clone(),
        split: found.id.split,
        iteration: found.id.iteration,
        rank: found.id.rank,
        state: match found.kind {
            FileKind::Finished => "finished",
            FileKind::Journal => "unfinished",
            FileKind::SetAside => "set aside",
        },
        bytes: found.path.metadata().map_or(0, |metadata| metadata.len()),
        trajectories: 0,
        tasks: None,
        steps: 0,
        success_rate: 0.0,
        problem: None,
    };
    match IterationFile::open_found(found) {
        Ok(file) => {
            let summaries = file.summaries();
            listing.trajectories = summaries.len() as u64;
            listing.tasks = file.scan().and_then(|scan| scan.run.as_ref()).map(|run| run.tasks);
            listing.steps = summaries.iter().map(|summary| summary.steps).sum();
            listing.success_rate = Metrics::of(summaries).success_rate;
        }
        Err(error) => listing.problem = Some(error.to_string()),
    }
    listing
}

impl fmt::Display for Listing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.files.is_empty() {
            return writeln!(out, "no trajectories found");
        }
        writeln!(
            out,
            "{:5} {:>9} {:>4}  {:10} {:>13} {:>8} {:>8} {:>9}",
            "split", "iteration", "rank", "state", "trajectories", "steps", "success", "MiB"
        )?;
        for file in &self.files {
            let rank = file.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
            let count = match file.tasks {
                Some(tasks) => format!("{} of {tasks}", file.trajectories),
                None => file.trajectories.to_string(),
            };
            writeln!(
                out,
                "{:5} {:>9} {rank:>4}  {:10} {count:>13} {:>8} {:>6.1} % {:>9.1}",
                file.split.as_str(),
                file.iteration,
                file.state,
                file.steps,
                file.success_rate * 100.0,
                file.bytes as f64 / f64::from(1 << 20)
            )?;
            if let Some(problem) = &file.problem {
                writeln!(out, "      {}", single_line(problem, 160))?;
            }
        }
        Ok(())
    }
}

/// Formats the trajectories of one iteration as a table.
pub fn render_summaries(summaries: &[Summary]) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{:>6} {:11} {:>6} {:>5} {:>5}  {:24} task",
        "index", "outcome", "reward", "steps", "diff.", "website"
    );
    for summary in summaries {
        let _ = writeln!(
            out,
            "{:>6} {:11} {:>6} {:>5} {:>5}  {:24} {}",
            summary.trajectory_index,
            summary.outcome_or_inferred().as_str(),
            summary.reward,
            summary.steps,
            summary.difficulty,
            single_line(summary.website.trim_start_matches("https://").trim_end_matches('/'), 24),
            single_line(&summary.task_name, 72)
        );
    }
    out
}
