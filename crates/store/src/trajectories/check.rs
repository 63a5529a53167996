//! Checks that the content of a save path is intact: every file is readable to its end, every journal line is valid,
//! and every screenshot exists.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use serde::Serialize;

use crate::iteration::IterationFile;
use crate::journal::{self, DamagedLine, Scan};
use crate::layout::{FileKind, FoundFile, SavePath, Split};
use crate::pt::PtError;
use crate::summary::Summary;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Informational; nothing is lost.
    Note,
    /// Data is lost or unreadable.
    Problem,
}

/// A note or problem about one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    pub path: PathBuf,
    #[serde(rename = "what")]
    pub message: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CheckReport {
    pub files: u64,
    pub trajectories: u64,
    pub screenshots: u64,
    pub findings: Vec<Finding>,
}

impl CheckReport {
    pub fn is_intact(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }

    fn add(&mut self, severity: Severity, path: &Path, message: impl Into<String>) {
        self.findings.push(Finding { severity, path: path.to_path_buf(), message: message.into() });
    }

    fn add_problem(&mut self, path: &Path, message: impl Into<String>) {
        self.add(Severity::Problem, path, message);
    }

    fn add_note(&mut self, path: &Path, message: impl Into<String>) {
        self.add(Severity::Note, path, message);
    }
}

fn count(number: u64, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

impl fmt::Display for CheckReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let label = match finding.severity {
                Severity::Note => "note",
                Severity::Problem => "PROBLEM",
            };
            writeln!(out, "{label}: {}: {}", finding.path.display(), finding.message)?;
        }
        let verdict = if self.is_intact() { "no problems found" } else { "problems found" };
        writeln!(
            out,
            "{}, {}, {}: {verdict}",
            count(self.files, "file", "files"),
            count(self.trajectories, "trajectory", "trajectories"),
            count(self.screenshots, "screenshot", "screenshots"),
        )
    }
}

/// Reads all files of both splits once.
pub fn check(save_path: &SavePath) -> std::io::Result<CheckReport> {
    let mut report = CheckReport::default();
    let mut used = BTreeSet::new();
    for split in Split::ALL {
        let files = save_path.files(split)?;
        for file in &files {
            report.files += 1;
            if file.kind == FileKind::Finished {
                check_file(file, save_path, &mut used, &mut report);
            } else {
                check_journal(file, &files, save_path, &mut used, &mut report);
            }
        }
        add_temporary_files(&save_path.split_directory(split), &mut report)?;
    }
    add_unused_images(save_path, &used, &mut report)?;
    Ok(report)
}

fn check_file(
    file: &FoundFile,
    save_path: &SavePath,
    used: &mut BTreeSet<PathBuf>,
    report: &mut CheckReport,
) {
    let mut read = || -> Result<(), PtError> {
        let opened = IterationFile::open_found(file)?;
        let mut indices = BTreeSet::new();
        for (position, trajectory) in opened.trajectories()?.enumerate() {
            let trajectory = trajectory?;
            let index = trajectory.task.trajectory_index;
            if !indices.insert(index) {
                report.add_problem(&file.path, format!("trajectory index {index} occurs more than once"));
            }
            if opened.summaries().get(position) != Some(&Summary::of(&trajectory))
                && !trajectory.steps.is_empty()
            {
                report.add_problem(
                    &file.path,
                    format!("the index of the file does not match trajectory {index}"),
                );
            }
            check_trajectory(&file.path, &trajectory, save_path, used, report);
        }
        Ok(())
    };
    if let Err(error) = read() {
        report.add_problem(&file.path, error.to_string());
    }
}

fn check_journal(
    file: &FoundFile,
    all: &[FoundFile],
    save_path: &SavePath,
    used: &mut BTreeSet<PathBuf>,
    report: &mut CheckReport,
) {
    match journal::scan(&file.path) {
        Ok(scan) => report_scan(&file.path, &scan, report),
        Err(error) => {
            report.add_problem(&file.path, error.to_string());
            return;
        }
    }
    let is_finished = |other: &FoundFile| other.kind == FileKind::Finished && other.id == file.id;
    if file.kind == FileKind::Journal && all.iter().any(is_finished) {
        report.add_note(&file.path, "the iteration is finished, but its journal was not removed");
    }
    let mut read = || -> Result<(), PtError> {
        for trajectory in IterationFile::open_found(file)?.trajectories()? {
            check_trajectory(&file.path, &trajectory?, save_path, used, report);
        }
        Ok(())
    };
    if let Err(error) = read() {
        report.add_problem(&file.path, error.to_string());
    }
    mark_unfinished_images_used(&file.path, save_path, used);
}

fn report_scan(path: &Path, scan: &Scan, report: &mut CheckReport) {
    let describe =
        |damage: &DamagedLine| format!("line {} (byte {}): {}", damage.line, damage.offset, damage.reason);
    if scan.run.is_none() {
        report.add_problem(path, "the journal does not start with a run record");
    }
    for damage in &scan.damaged {
        report.add_problem(path, describe(damage));
    }
    if let Some(damage) = &scan.torn_tail {
        report.add_note(
            path,
            format!("{}; an interrupted write, which resuming the run removes", describe(damage)),
        );
    }
    for index in &scan.repeated {
        report
            .add_note(path, format!("trajectory {index} has several finished records; the last one counts"));
    }
}

fn check_trajectory(
    path: &Path,
    trajectory: &Trajectory,
    save_path: &SavePath,
    used: &mut BTreeSet<PathBuf>,
    report: &mut CheckReport,
) {
    report.trajectories += 1;
    for (number, step) in trajectory.steps.iter().enumerate() {
        let recorded = &step.observation.image_path;
        if recorded.is_empty() {
            continue;
        }
        let image = save_path.resolve_image(recorded);
        if image.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
            report.screenshots += 1;
        } else {
            let index = trajectory.task.trajectory_index;
            report.add_problem(
                path,
                format!("trajectory {index} step {number}: no screenshot {}", image.display()),
            );
        }
        used.extend(image.parent().map(Path::to_path_buf));
    }
}

/// Screenshots of unfinished episodes are also in use.
fn mark_unfinished_images_used(path: &Path, save_path: &SavePath, used: &mut BTreeSet<PathBuf>) {
    let Ok(reader) = journal::JournalReader::open(path) else { return };
    for entry in reader.flatten() {
        if let Ok(journal::Record::Step(step)) = entry.record {
            let image = save_path.resolve_image(&step.step.observation.image_path);
            used.extend(image.parent().map(Path::to_path_buf));
        }
    }
}

fn add_temporary_files(directory: &Path, report: &mut CheckReport) -> std::io::Result<()> {
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(".tmp") {
            report.add_note(&path, "a file being written, or a leftover of an interrupted write");
        }
    }
    Ok(())
}

fn add_unused_images(
    save_path: &SavePath,
    used: &BTreeSet<PathBuf>,
    report: &mut CheckReport,
) -> std::io::Result<()> {
    let images = save_path.images();
    // Trajectories record absolute paths, but the save path may be relative.
    let canonical = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let used: BTreeSet<PathBuf> = used.iter().map(canonical).collect();
    let unused =
        entries(&images)?.iter().filter(|path| path.is_dir() && !used.contains(&canonical(path))).count();
    if unused > 0 {
        report.add_note(&images, format!("{unused} directories are not used by any trajectory"));
    }
    Ok(())
}

fn entries(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| entry.map(|entry| entry.path())).collect(),
    }
}
