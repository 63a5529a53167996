//! Judging saved trajectories again: after an outage of the judge, or with another one. Owns nothing; rewrites the
//! files of finished iterations, each as a whole or not at all.

use std::{collections::HashMap, io, path::PathBuf};

use futures_util::{StreamExt, stream};
use proto::trajectory::{Outcome, Trajectory};
use store::{
    IterationFile, SavePath, Split,
    layout::{FileKind, FoundFile},
    pt::{self, PtError},
};

use crate::{
    episode::is_the_agents,
    judge::{Judge, Verdict, blocked_site},
    plan::blocklist,
};

#[derive(Debug, thiserror::Error)]
pub enum RejudgeError {
    #[error("cannot look through {path}: {source}", path = path.display())]
    Look { path: PathBuf, source: io::Error },
    #[error("{0}")]
    File(#[from] PtError),
    #[error("there is no finished iteration to judge under {path}", path = path.display())]
    Nothing { path: PathBuf },
}

/// What to judge, and how much at once.
#[derive(Clone, Debug)]
pub struct Rejudging {
    /// Only trajectories that no judge has decided on.
    pub only_unjudged: bool,
    /// Only this iteration.
    pub iteration: Option<u64>,
    /// Only this split; both otherwise.
    pub split: Option<Split>,
    /// Trajectories at once.
    pub at_once: usize,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejudged {
    /// Trajectories that were looked at by the judge.
    pub judged: usize,
    /// Among them, those whose outcome is another than before.
    pub changed: usize,
    /// Among them, those that the judge could not decide on this time either.
    pub still_unjudged: usize,
    /// Among them, those that keep an earlier verdict because the judge could not decide this time.
    pub kept: usize,
    /// Left as they were: decided before, or never the agent's to decide.
    pub left_alone: usize,
    /// What was passed over, and why.
    pub notes: Vec<String>,
}

/// Judges saved iterations again. Files are read one trajectory at a time and replaced as a whole, so that whatever
/// interrupts this leaves every file as it was or complete.
pub async fn rejudge(
    save_path: &SavePath,
    judge: &Judge,
    what: &Rejudging,
) -> Result<Rejudged, RejudgeError> {
    let mut report = Rejudged::default();
    let files = files(save_path, what, &mut report.notes)?;
    if files.is_empty() {
        return Err(RejudgeError::Nothing { path: save_path.root().to_owned() });
    }
    for found in files {
        one_file(save_path, &found, judge, what, &mut report).await?;
    }
    Ok(report)
}

fn files(
    save_path: &SavePath,
    what: &Rejudging,
    notes: &mut Vec<String>,
) -> Result<Vec<FoundFile>, RejudgeError> {
    let splits = what.split.map_or_else(|| vec![Split::Train, Split::Test], |split| vec![split]);
    let mut files = Vec::new();
    for split in splits {
        let look = |source| RejudgeError::Look { path: save_path.split_directory(split), source };
        let asked =
            |found: &FoundFile| what.iteration.is_none_or(|iteration| iteration == found.id.iteration);
        files.extend(save_path.finished(split).map_err(look)?.into_iter().filter(asked));
        let journals = save_path.files(split).map_err(look)?.into_iter().filter(asked);
        for journal in journals.filter(|found| found.kind == FileKind::Journal) {
            notes.push(format!("{} is not finished and was left alone", journal.path.display()));
        }
    }
    Ok(files)
}

async fn one_file(
    save_path: &SavePath,
    found: &FoundFile,
    judge: &Judge,
    what: &Rejudging,
    report: &mut Rejudged,
) -> Result<(), RejudgeError> {
    let file = IterationFile::open_found(found)?;
    let places: Vec<usize> = (0..file.summaries().len()).collect();
    let judged = stream::iter(places).map(|place| {
        let file = &file;
        async move {
            let trajectory = file.read(place)?;
            if !wanted(&trajectory, what.only_unjudged) {
                return Ok::<_, PtError>((place, None));
            }
            let shown = found_pictures(save_path, trajectory.clone());
            Ok((place, Some((judge.judge(&shown).await, trajectory))))
        }
    });
    let mut judged = judged.buffer_unordered(what.at_once.max(1));
    let mut verdicts: HashMap<usize, Verdict> = HashMap::new();
    while let Some(done) = judged.next().await {
        let (place, verdict) = done?;
        let Some((verdict, trajectory)) = verdict else {
            report.left_alone += 1;
            continue;
        };
        report.judged += 1;
        let decided = trajectory.metadata.outcome.is_some_and(|outcome| outcome != Outcome::JudgeError);
        if decided && verdict.outcome == Outcome::JudgeError {
            // A judge that is away takes no verdict with it.
            report.kept += 1;
            continue;
        }
        report.still_unjudged += usize::from(verdict.outcome == Outcome::JudgeError);
        report.changed += usize::from(trajectory.metadata.outcome != Some(verdict.outcome));
        if let Some(site) = blocked_site(&verdict, &trajectory)
            && let Err(error) = blocklist::append(save_path.root(), &site)
        {
            report.notes.push(format!("cannot note that {} blocks: {error}", site.domain));
        }
        verdicts.insert(place, verdict);
    }
    drop(judged);
    drop(file);
    if !verdicts.is_empty() {
        let mut place = 0;
        pt::rewrite(&found.path, |mut trajectory| {
            if let Some(verdict) = verdicts.remove(&place) {
                verdict.apply(&mut trajectory);
            }
            place += 1;
            Some(trajectory)
        })?;
    }
    Ok(())
}

/// Only an end of the agent's own making is a judge's to decide on.
fn wanted(trajectory: &Trajectory, only_unjudged: bool) -> bool {
    let undecided = trajectory.metadata.outcome == Some(Outcome::JudgeError);
    is_the_agents(trajectory) && (undecided || !only_unjudged)
}

/// With the screenshots where they lie now, should the save path have moved.
fn found_pictures(save_path: &SavePath, mut trajectory: Trajectory) -> Trajectory {
    for step in &mut trajectory.steps {
        let recorded = &step.observation.image_path;
        if !recorded.is_empty() {
            step.observation.image_path = save_path.resolve_image(recorded).display().to_string();
        }
    }
    trajectory
}
