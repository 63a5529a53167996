//! `webgym trajectories`: what is in a save path, one trajectory as text, two compared, some removed, all checked.

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
        save_path: PathBuf,
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
        which: Which,
        /// Also what the model was sent.
        #[arg(long)]
        prompts: bool,
        /// Also the accessibility text.
        #[arg(long)]
        ac_trees: bool,
    },
    /// Compare two trajectories of one iteration, or of two.
    Diff {
        #[command(flatten)]
        which: Which,
        /// The other trajectory's index.
        other: i64,
        /// The other's iteration, when it is another one.
        #[arg(long, value_name = "N")]
        other_iteration: Option<u64>,
    },
    /// Remove an iteration, or some trajectories of it, with their screenshots.
    Rm {
        save_path: PathBuf,
        #[arg(long, default_value = "train", value_name = "train|test")]
        split: Split,
        #[arg(long, value_name = "N")]
        iteration: u64,
        /// Only these trajectories.
        #[arg(long, value_name = "N")]
        index: Vec<i64>,
        /// Really do it; otherwise only say what would go.
        #[arg(long)]
        yes: bool,
    },
    /// Check that every image is there and every journal line is whole.
    Check { save_path: PathBuf },
}

#[derive(Args)]
pub(crate) struct Which {
    save_path: PathBuf,
    /// The trajectory's index.
    index: i64,
    #[arg(long, default_value = "train", value_name = "train|test")]
    split: Split,
    /// The latest when not given.
    #[arg(long, value_name = "N")]
    iteration: Option<u64>,
}

impl Which {
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
            let own = which.iteration()?;
            let left = which.read(which.index, own)?;
            let right = which.read(*other, other_iteration.unwrap_or(own))?;
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
    let place = save_path;
    let save_path = SavePath::new(save_path);
    if !place.is_dir() {
        anyhow::bail!("{}", nothing_at(place));
    }
    match number {
        Some(number) => {
            let summaries = iteration::summaries_of(&save_path, split, number)?;
            if json {
                println!("{}", serde_json::to_string_pretty(&summaries)?);
            } else {
                print!("{}", render_summaries(&summaries));
            }
        }
        None => {
            let listing = list(&save_path)?;
            if listing.files.is_empty() && !json {
                println!("{}", nothing_at(place));
            } else if json {
                println!("{}", serde_json::to_string_pretty(&listing)?);
            } else {
                print!("{listing}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Why there are no trajectories at a place, and where there are some nearby.
fn nothing_at(place: &Path) -> String {
    let shown = place.display();
    let root = place.ancestors().skip(1).take(3).find(|above| is_save_path(above));
    if let Some(root) = root {
        return format!("{shown} is inside of a save path; give the save path itself: {}", root.display());
    }
    if !place.exists() {
        return format!("there is nothing at {shown}");
    }
    if !place.is_dir() {
        return format!("{shown} is a file; give the save path of a run, which is a folder");
    }
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut below: Vec<String> =
        entries.filter(|path| is_save_path(path)).map(|path| path.display().to_string()).collect();
    below.sort();
    match below.as_slice() {
        [] => format!("no trajectories at {shown}: no run has saved any there"),
        [one] => format!("no trajectories at {shown} itself; there are some in {one}"),
        several => format!("no trajectories at {shown} itself; there are some in {}", several.join(", ")),
    }
}

fn is_save_path(place: &Path) -> bool {
    let path = SavePath::new(place);
    Split::ALL.iter().any(|split| path.files(*split).is_ok_and(|files| !files.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_gives_the_wrong_place_is_told_the_right_one() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("runs/first");
        let trajectories = run.join("train_trajectories");
        std::fs::create_dir_all(&trajectories).unwrap();
        let file = trajectories.join("train_trajectories.pt.iteration0");
        std::fs::write(&file, "").unwrap();
        let (runs, first) = (folder.path().join("runs"), run.display().to_string());
        for (place, wanted) in [
            (file, format!("give the save path itself: {first}")),
            (trajectories, format!("give the save path itself: {first}")),
            (runs.clone(), format!("there are some in {first}")),
            (runs.join("second"), "there is nothing at".to_owned()),
            (folder.path().to_owned(), "no run has saved any there".to_owned()),
        ] {
            let said = nothing_at(&place);
            assert!(said.contains(&wanted), "{}: {said}", place.display());
        }
        std::fs::write(folder.path().join("tasks.jsonl"), "").unwrap();
        assert!(nothing_at(&folder.path().join("tasks.jsonl")).contains("is a file; give the save path"));
    }
}
