//! Whether everything in a save path is whole: every file readable to its end, every journal line as it was written,
//! every screenshot there.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use serde::Serialize;

use crate::iteration::IterationFile;
use crate::journal::{self, Damage, Scan};
use crate::layout::{FileKind, FoundFile, SavePath, Split};
use crate::pt::PtError;
use crate::summary::Summary;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; nothing is lost.
    Note,
    /// Something is lost or unreadable.
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    pub path: PathBuf,
    pub what: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct CheckReport {
    pub files: u64,
    pub trajectories: u64,
    pub screenshots: u64,
    pub findings: Vec<Finding>,
}

impl CheckReport {
    pub fn is_whole(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }

    fn add(&mut self, severity: Severity, path: &Path, what: impl Into<String>) {
        self.findings.push(Finding { severity, path: path.to_path_buf(), what: what.into() });
    }

    fn problem(&mut self, path: &Path, what: impl Into<String>) {
        self.add(Severity::Problem, path, what);
    }

    fn note(&mut self, path: &Path, what: impl Into<String>) {
        self.add(Severity::Note, path, what);
    }
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

impl fmt::Display for CheckReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let word = match finding.severity {
                Severity::Note => "note",
                Severity::Problem => "PROBLEM",
            };
            writeln!(out, "{word}: {}: {}", finding.path.display(), finding.what)?;
        }
        let verdict = if self.is_whole() { "all whole" } else { "not all whole" };
        writeln!(
            out,
            "{}, {}, {}: {verdict}",
            counted(self.files, "file", "files"),
            counted(self.trajectories, "trajectory", "trajectories"),
            counted(self.screenshots, "screenshot", "screenshots"),
        )
    }
}

/// Reads everything of both splits once.
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
        note_temporary_files(&save_path.split_directory(split), &mut report)?;
    }
    note_unused_images(save_path, &used, &mut report)?;
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
                report.problem(&file.path, format!("trajectory index {index} occurs more than once"));
            }
            if opened.summaries().get(position) != Some(&Summary::of(&trajectory))
                && !trajectory.steps.is_empty()
            {
                report
                    .problem(&file.path, format!("the table of contents is wrong about trajectory {index}"));
            }
            check_trajectory(&file.path, &trajectory, save_path, used, report);
        }
        Ok(())
    };
    if let Err(error) = read() {
        report.problem(&file.path, error.to_string());
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
            report.problem(&file.path, error.to_string());
            return;
        }
    }
    let is_finished = |other: &FoundFile| other.kind == FileKind::Finished && other.id == file.id;
    if file.kind == FileKind::Journal && all.iter().any(is_finished) {
        report.note(&file.path, "the iteration is finished; its journal was not removed");
    }
    let mut read = || -> Result<(), PtError> {
        for trajectory in IterationFile::open_found(file)?.trajectories()? {
            check_trajectory(&file.path, &trajectory?, save_path, used, report);
        }
        Ok(())
    };
    if let Err(error) = read() {
        report.problem(&file.path, error.to_string());
    }
    use_running_images(&file.path, save_path, used);
}

fn report_scan(path: &Path, scan: &Scan, report: &mut CheckReport) {
    let at = |damage: &Damage| format!("line {} (byte {}): {}", damage.line, damage.offset, damage.reason);
    if scan.run.is_none() {
        report.problem(path, "the journal does not begin with the record of a run");
    }
    for damage in &scan.damaged {
        report.problem(path, at(damage));
    }
    if let Some(damage) = &scan.torn_tail {
        report.note(path, format!("{}; a write was cut short, resume cuts it away", at(damage)));
    }
    for index in &scan.repeated {
        report.note(path, format!("trajectory {index} has several finished records; the last counts"));
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
            report.problem(
                path,
                format!("trajectory {index} step {number}: no screenshot {}", image.display()),
            );
        }
        used.extend(image.parent().map(Path::to_path_buf));
    }
}

/// Episodes that were running have screenshots too.
fn use_running_images(path: &Path, save_path: &SavePath, used: &mut BTreeSet<PathBuf>) {
    let Ok(reader) = journal::JournalReader::open(path) else { return };
    for entry in reader.flatten() {
        if let Ok(journal::Record::Step(step)) = entry.record {
            let image = save_path.resolve_image(&step.step.observation.image_path);
            used.extend(image.parent().map(Path::to_path_buf));
        }
    }
}

fn note_temporary_files(directory: &Path, report: &mut CheckReport) -> std::io::Result<()> {
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(".tmp") {
            report.note(&path, "being written, or left by an interrupted write");
        }
    }
    Ok(())
}

fn note_unused_images(
    save_path: &SavePath,
    used: &BTreeSet<PathBuf>,
    report: &mut CheckReport,
) -> std::io::Result<()> {
    let images = save_path.images();
    // Trajectories record whole paths; the save path may have been given from where one stands.
    let whole = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let used: BTreeSet<PathBuf> = used.iter().map(whole).collect();
    let unused =
        entries(&images)?.iter().filter(|path| path.is_dir() && !used.contains(&whole(path))).count();
    if unused > 0 {
        report.note(&images, format!("{unused} directories belong to no trajectory"));
    }
    Ok(())
}

fn entries(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| entry.map(|entry| entry.path())).collect(),
    }
}
