//! `webgym trajectories`: lists, shows, compares, removes and checks the trajectories of a save path.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::{Args, Subcommand};
use proto::trajectory::Trajectory;
use store::{
    SavePath, Split, iteration,
    trajectories::{ShowOptions, check, diff, find, list, plan_removal, render_summaries, show},
};

#[derive(Subcommand)]
pub(crate) enum TrajectoriesCommand {
    /// List the iterations, or with --iteration the trajectories of one.
    Ls {
        /// The save path of a run.
        save_path: PathBuf,
        /// The split to read.
        #[arg(long, default_value = "train", value_name = "train|test")]
        split: Split,
        #[arg(long, value_name = "N")]
        iteration: Option<u64>,
        #[arg(long)]
        json: bool,
    },
    /// Print one trajectory as text.
    Show {
        #[command(flatten)]
        which: Selection,
        /// Also print the prompts.
        #[arg(long)]
        prompts: bool,
        /// Also print the accessibility trees.
        #[arg(long)]
        ac_trees: bool,
    },
    /// Compare two trajectories of one iteration, or of two.
    Diff {
        #[command(flatten)]
        which: Selection,
        /// The index of the other trajectory.
        other: i64,
        /// The iteration of the other trajectory. Default: the same.
        #[arg(long, value_name = "N")]
        other_iteration: Option<u64>,
    },
    /// Remove an iteration, or some trajectories of it, with their screenshots.
    Rm {
        /// The save path of a run.
        save_path: PathBuf,
        /// The split to read.
        #[arg(long, default_value = "train", value_name = "train|test")]
        split: Split,
        #[arg(long, value_name = "N")]
        iteration: u64,
        /// Only these trajectories.
        #[arg(long, value_name = "N")]
        index: Vec<i64>,
        /// Remove them. Without this, only print what would be removed.
        #[arg(long)]
        yes: bool,
    },
    /// Check that every image exists and every journal line is complete.
    Check {
        /// The save path of a run.
        save_path: PathBuf,
    },
}

#[derive(Args)]
pub(crate) struct Selection {
    /// The save path of a run.
    save_path: PathBuf,
    /// The index of the trajectory.
    index: i64,
    /// The split to read.
    #[arg(long, default_value = "train", value_name = "train|test")]
    split: Split,
    /// The iteration. Default: the latest.
    #[arg(long, value_name = "N")]
    iteration: Option<u64>,
}

impl Selection {
    fn iteration(&self) -> anyhow::Result<u64> {
        if let Some(number) = self.iteration {
            return Ok(number);
        }
        let all = iteration::iterations(&SavePath::new(&self.save_path), self.split)?;
        all.last().copied().with_context(|| {
            format!("there are no {} trajectories under {}", self.split, self.save_path.display())
        })
    }

    fn read(&self, index: i64, iteration: u64) -> anyhow::Result<Trajectory> {
        let found = find(&SavePath::new(&self.save_path), self.split, iteration, index)?;
        found.with_context(|| format!("{} iteration {iteration} has no trajectory {index}", self.split))
    }
}

pub(crate) fn run(command: &TrajectoriesCommand) -> anyhow::Result<ExitCode> {
    match command {
        TrajectoriesCommand::Ls { save_path, split, iteration, json } => {
            ls(save_path, *split, *iteration, *json)
        }
        TrajectoriesCommand::Show { which, prompts, ac_trees } => {
            let trajectory = which.read(which.index, which.iteration()?)?;
            print!("{}", show(&trajectory, ShowOptions { prompts: *prompts, ac_trees: *ac_trees }));
            Ok(ExitCode::SUCCESS)
        }
        TrajectoriesCommand::Diff { which, other, other_iteration } => {
            let iteration = which.iteration()?;
            let left = which.read(which.index, iteration)?;
            let right = which.read(*other, other_iteration.unwrap_or(iteration))?;
            print!("{}", diff(&left, &right));
            Ok(ExitCode::SUCCESS)
        }
        TrajectoriesCommand::Rm { save_path, split, iteration, index, yes } => {
            let indices = (!index.is_empty()).then_some(index.as_slice());
            let removal = plan_removal(&SavePath::new(save_path), *split, *iteration, indices)?;
            let count = if removal.trajectories == 1 {
                "1 trajectory".into()
            } else {
                format!("{} trajectories", removal.trajectories)
            };
            let size = removal.image_bytes / 1024;
            if !yes {
                println!("This would remove {count} and {size} KiB of screenshots. Add --yes to do it.");
                return Ok(ExitCode::SUCCESS);
            }
            removal.execute()?;
            println!("Removed {count} and {size} KiB of screenshots.");
            Ok(ExitCode::SUCCESS)
        }
        TrajectoriesCommand::Check { save_path } => {
            let report = check(&SavePath::new(save_path))?;
            print!("{report}");
            Ok(if report.is_intact() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn ls(
    save_path: &std::path::Path,
    split: Split,
    number: Option<u64>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let root = save_path;
    let save_path = SavePath::new(save_path);
    if !root.is_dir() {
        anyhow::bail!("{}", explain_empty(root));
    }
    if let Some(number) = number {
        let summaries = iteration::summaries_of(&save_path, split, number)?;
        if json {
            println!("{}", serde_json::to_string_pretty(&summaries)?);
        } else {
            print!("{}", render_summaries(&summaries));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let listing = list(&save_path)?;
    if listing.files.is_empty() && !json {
        println!("{}", explain_empty(root));
    } else if json {
        println!("{}", serde_json::to_string_pretty(&listing)?);
    } else {
        print!("{listing}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Explains why a path has no trajectories, and names save paths nearby.
fn explain_empty(path: &Path) -> String {
    let shown = path.display();
    let root = path.ancestors().skip(1).take(3).find(|above| is_save_path(above));
    if let Some(root) = root {
        return format!("{shown} is inside a save path; give the save path itself: {}", root.display());
    }
    if !path.exists() {
        return format!("{shown} does not exist");
    }
    if !path.is_dir() {
        return format!("{shown} is a file; give the save path of a run, which is a folder");
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut below: Vec<String> =
        entries.filter(|path| is_save_path(path)).map(|path| path.display().to_string()).collect();
    below.sort();
    match below.as_slice() {
        [] => format!("no trajectories in {shown}: no run has saved any there"),
        [one] => format!("no trajectories in {shown} itself; there are some in {one}"),
        several => format!("no trajectories in {shown} itself; there are some in {}", several.join(", ")),
    }
}

fn is_save_path(path: &Path) -> bool {
    let path = SavePath::new(path);
    Split::ALL.iter().any(|split| path.files(*split).is_ok_and(|files| !files.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_path_is_explained() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("runs/first");
        let trajectories = run.join("train_trajectories");
        std::fs::create_dir_all(&trajectories).unwrap();
        let file = trajectories.join("train_trajectories.pt.iteration0");
        std::fs::write(&file, "").unwrap();
        let (runs, first) = (folder.path().join("runs"), run.display().to_string());
        for (path, wanted) in [
            (file, format!("give the save path itself: {first}")),
            (trajectories, format!("give the save path itself: {first}")),
            (runs.clone(), format!("there are some in {first}")),
            (runs.join("second"), "does not exist".to_owned()),
            (folder.path().to_owned(), "no run has saved any there".to_owned()),
        ] {
            let text = explain_empty(&path);
            assert!(text.contains(&wanted), "{}: {text}", path.display());
        }
        std::fs::write(folder.path().join("tasks.jsonl"), "").unwrap();
        assert!(explain_empty(&folder.path().join("tasks.jsonl")).contains("is a file; give the save path"));
    }
}
