//! Judges saved trajectories again, after an outage of the judge or with another one. Rewrites the files of finished
//! iterations, each completely or not at all.

use std::{collections::HashMap, io, path::PathBuf};

use futures_util::{StreamExt, stream};
use proto::trajectory::{Evaluation, Outcome, Trajectory};
use store::{
    IterationFile, SavePath, Split,
    layout::{FileKind, FoundFile},
    pt::{self, PtError},
};

use crate::{
    episode::is_ended_by_agent,
    judge::{Judge, Verdict, blocked_site},
    plan::blocklist,
};

#[derive(Debug, thiserror::Error)]
pub enum RejudgeError {
    #[error("cannot list the files in {path}: {source}", path = path.display())]
    ListFiles { path: PathBuf, source: io::Error },
    #[error("{0}")]
    File(#[from] PtError),
    #[error("there is no finished iteration to judge under {path}", path = path.display())]
    NoIteration { path: PathBuf },
}

/// Which trajectories to judge, and how many at the same time.
#[derive(Clone, Debug)]
pub struct RejudgeOptions {
    /// Judge only trajectories without a verdict.
    pub only_unjudged: bool,
    /// Judge only this iteration.
    pub iteration: Option<u64>,
    /// Judge only this split instead of both.
    pub split: Option<Split>,
    /// The number of trajectories judged at the same time.
    pub concurrency: usize,
}

/// Counts of what was judged and changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejudgeReport {
    /// Trajectories that were given to the judge.
    pub judged: usize,
    /// Judged trajectories whose outcome changed.
    pub changed: usize,
    /// Judged trajectories that still have no verdict.
    pub still_unjudged: usize,
    /// Judged trajectories that keep their earlier verdict because the judge gave none this time.
    pub kept: usize,
    /// Trajectories that were not given to the judge: they have a verdict, or were not ended by the agent.
    pub skipped: usize,
    /// Files that were skipped, and other messages for the user.
    pub notes: Vec<String>,
}

/// Judges saved iterations again. Files are read one trajectory at a time and replaced atomically, so an interruption
/// leaves every file either unchanged or complete.
pub async fn rejudge(
    save_path: &SavePath,
    judge: &Judge,
    options: &RejudgeOptions,
) -> Result<RejudgeReport, RejudgeError> {
    let mut report = RejudgeReport::default();
    let files = select_files(save_path, options, &mut report.notes)?;
    if files.is_empty() {
        return Err(RejudgeError::NoIteration { path: save_path.root().to_owned() });
    }
    for found in files {
        rejudge_file(save_path, &found, judge, options, &mut report).await?;
    }
    Ok(report)
}

fn select_files(
    save_path: &SavePath,
    options: &RejudgeOptions,
    notes: &mut Vec<String>,
) -> Result<Vec<FoundFile>, RejudgeError> {
    let splits = options.split.map_or_else(|| vec![Split::Train, Split::Test], |split| vec![split]);
    let mut files = Vec::new();
    for split in splits {
        let list_error = |source| RejudgeError::ListFiles { path: save_path.split_directory(split), source };
        let is_selected =
            |found: &FoundFile| options.iteration.is_none_or(|iteration| iteration == found.id.iteration);
        files.extend(save_path.finished_files(split).map_err(list_error)?.into_iter().filter(is_selected));
        let journals = save_path.files(split).map_err(list_error)?.into_iter().filter(is_selected);
        for journal in journals.filter(|found| found.kind == FileKind::Journal) {
            notes.push(format!("{} is not finished and was skipped", journal.path.display()));
        }
    }
    Ok(files)
}

async fn rejudge_file(
    save_path: &SavePath,
    found: &FoundFile,
    judge: &Judge,
    options: &RejudgeOptions,
    report: &mut RejudgeReport,
) -> Result<(), RejudgeError> {
    let verdicts = collect_verdicts(save_path, found, judge, options, report).await?;
    if verdicts.is_empty() { Ok(()) } else { write_verdicts(found, verdicts) }
}

/// Judges the selected trajectories of one file. Returns the verdicts to write, by the trajectory's index in the file.
async fn collect_verdicts(
    save_path: &SavePath,
    found: &FoundFile,
    judge: &Judge,
    options: &RejudgeOptions,
    report: &mut RejudgeReport,
) -> Result<HashMap<usize, Verdict>, RejudgeError> {
    let file = IterationFile::open_found(found)?;
    let indices: Vec<usize> = (0..file.summaries().len()).collect();
    let judged = stream::iter(indices).map(|index| {
        let file = &file;
        async move {
            let trajectory = file.read(index)?;
            if !should_judge(&trajectory, options.only_unjudged) {
                return Ok::<_, PtError>((index, None));
            }
            let resolved = with_resolved_screenshots(save_path, trajectory.clone());
            Ok((index, Some((judge.judge(&resolved).await, trajectory))))
        }
    });
    let mut judged = judged.buffer_unordered(options.concurrency.max(1));
    let mut verdicts = HashMap::new();
    while let Some(result) = judged.next().await {
        let (index, judged) = result?;
        let Some((verdict, trajectory)) = judged else {
            report.skipped += 1;
            continue;
        };
        if report.count_verdict(earlier_outcome(&trajectory), verdict.outcome) {
            extend_blocklist(save_path, &verdict, &trajectory, &mut report.notes);
            verdicts.insert(index, verdict);
        }
    }
    Ok(verdicts)
}

/// Returns the outcome of an earlier judgment. Files of the Python system have none, but the reward and its explanation.
fn earlier_outcome(trajectory: &Trajectory) -> Option<Outcome> {
    let is_judged = trajectory.steps.last().is_some_and(|step| {
        step.reward.reward != 0 || step.reward.is_blocked || step.reward.evaluation != Evaluation::default()
    });
    let inferred = || is_judged.then(|| store::Summary::of(trajectory).outcome_or_inferred());
    trajectory.metadata.outcome.or_else(inferred)
}

impl RejudgeReport {
    /// Counts a verdict and returns whether to write it: an outage of the judge must not remove an earlier verdict.
    fn count_verdict(&mut self, earlier: Option<Outcome>, outcome: Outcome) -> bool {
        self.judged += 1;
        let is_unjudged = outcome == Outcome::JudgeError;
        if is_unjudged && earlier.is_some_and(|earlier| earlier != Outcome::JudgeError) {
            self.kept += 1;
            return false;
        }
        self.still_unjudged += usize::from(is_unjudged);
        self.changed += usize::from(earlier != Some(outcome));
        true
    }
}

/// Adds the site to the blocklist if the verdict says that it blocked the agent.
fn extend_blocklist(
    save_path: &SavePath,
    verdict: &Verdict,
    trajectory: &Trajectory,
    notes: &mut Vec<String>,
) {
    if let Some(site) = blocked_site(verdict, trajectory)
        && let Err(error) = blocklist::append(save_path.root(), &site)
    {
        notes.push(format!("cannot add {} to the blocklist: {error}", site.domain));
    }
}

fn write_verdicts(found: &FoundFile, mut verdicts: HashMap<usize, Verdict>) -> Result<(), RejudgeError> {
    let mut index = 0;
    pt::rewrite(&found.path, |mut trajectory| {
        if let Some(verdict) = verdicts.remove(&index) {
            verdict.apply(&mut trajectory);
        }
        index += 1;
        Some(trajectory)
    })?;
    Ok(())
}

/// Returns whether a trajectory is given to the judge. Only episodes that the agent ended itself can be judged.
fn should_judge(trajectory: &Trajectory, only_unjudged: bool) -> bool {
    let is_unjudged = trajectory.metadata.outcome == Some(Outcome::JudgeError);
    is_ended_by_agent(trajectory) && (is_unjudged || !only_unjudged)
}

/// Sets the screenshots to their current paths, in case the save path was moved.
fn with_resolved_screenshots(save_path: &SavePath, mut trajectory: Trajectory) -> Trajectory {
    for step in &mut trajectory.steps {
        let recorded = &step.observation.image_path;
        if !recorded.is_empty() {
            step.observation.image_path = save_path.resolve_image(recorded).display().to_string();
        }
    }
    trajectory
}
