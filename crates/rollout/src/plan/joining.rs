//! Joins the plan of another rank: finds the plan that this rank has to take part in, and recognises iterations that were
//! merged without it.

use std::{
    fs::File,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;
use store::{
    IterationId, RunMetadata, SavePath,
    aggregate::MERGED_RANKS,
    durable::Existing,
    layout::FileKind,
    pt::{PtFile, PtWriter},
};

use super::{PlanError, SharedPlan, Unfinished, shared_plan::LAUNCH_KEY};

/// A plan younger than this may belong to a rank that has not created its journal yet.
const MIN_ABANDONED_AGE: Duration = Duration::from_secs(60);

/// Held while a rank looks for a plan or creates one, so that two ranks never create one each.
pub(super) struct PlanLock(#[allow(dead_code, reason = "held for its lock")] Option<File>);

impl PlanLock {
    pub(super) fn acquire(save_path: &SavePath, split: store::Split) -> Self {
        let path = save_path.split_directory(split).join(".plans.lock");
        let file = File::options().create(true).append(true).open(path).ok();
        // On file systems without locks, publishing a plan under an existing name still fails.
        Self(file.filter(|file| file.lock().is_ok()))
    }
}

/// Finds the plan of another rank that this rank still has to take part in.
pub(super) fn find_plan(
    save_path: &SavePath,
    id: IterationId,
    unfinished: &Unfinished,
    launch: Option<&str>,
) -> Result<Option<(PathBuf, SharedPlan)>, PlanError> {
    let root = save_path.root();
    let plans = save_path.plans(id.split).map_err(|source| PlanError::io("list", root, source))?;
    for (iteration, path) in plans {
        let file_of = |rank| save_path.iteration_file(IterationId { iteration, rank, ..id });
        if file_of(id.rank).exists() {
            continue;
        }
        let Some(plan) = SharedPlan::read(&path)? else { continue };
        // A rank joins an iteration that was merged without it only if it belongs to that launch or resumes explicitly.
        let belongs = *unfinished == Unfinished::Resume || plan.is_of_launch(launch) == Some(true);
        if file_of(None).exists() && !belongs {
            continue;
        }
        match (unfinished, plan.is_of_launch(launch)) {
            (Unfinished::Refuse, Some(false)) => {
                return Err(PlanError::OtherLaunch { path, begun: plan.begun, iteration });
            }
            (Unfinished::SetAside, Some(false)) => set_aside(&path)?,
            (Unfinished::SetAside, None) if is_abandoned(save_path, id, iteration, &path) => {
                set_aside(&path)?;
            }
            _ => return Ok(Some((path, plan))),
        }
    }
    Ok(None)
}

/// Returns the latest iteration that was merged without this rank.
pub(super) fn merged_without(save_path: &SavePath, id: IterationId) -> Result<Option<u64>, PlanError> {
    let plans =
        save_path.plans(id.split).map_err(|source| PlanError::io("list", save_path.root(), source))?;
    let exists = |iteration, rank| save_path.iteration_file(IterationId { iteration, rank, ..id }).exists();
    let is_missing =
        |iteration: &u64| id.rank.is_some() && exists(*iteration, None) && !exists(*iteration, id.rank);
    Ok(plans.into_iter().map(|(iteration, _)| iteration).filter(is_missing).max())
}

/// Returns the last iteration if this launch collected and merged it completely before this rank started. Writes an empty file
/// for the rank, so that its next run is the next iteration, as for the other ranks.
pub(super) fn missed_iteration(
    save_path: &SavePath,
    id: IterationId,
    launch: Option<&str>,
) -> Result<Option<u64>, PlanError> {
    let (Some(launch), Some(_)) = (launch, id.rank) else { return Ok(None) };
    let files =
        save_path.files(id.split).map_err(|source| PlanError::io("list", save_path.root(), source))?;
    let last = files.iter().rfind(|file| file.kind == FileKind::Finished && file.id.rank.is_none());
    let Some(merged) =
        last.and_then(|last| PtFile::open(&last.path).ok().map(|file| (last.id.iteration, file)))
    else {
        return Ok(None);
    };
    let (iteration, file) = merged;
    let own = save_path.iteration_file(IterationId { iteration, ..id });
    let was_missed = |metadata: &&RunMetadata| {
        let took_part = metadata.extra.get(MERGED_RANKS).and_then(|ranks| ranks.as_array());
        metadata.extra.get(LAUNCH_KEY) == Some(&json!(launch))
            && !own.exists()
            && !took_part.is_some_and(|ranks| ranks.contains(&json!(id.rank)))
    };
    let Some(metadata) = file.own_metadata().filter(was_missed) else { return Ok(None) };
    let written = PtWriter::create(&own).and_then(|writer| writer.finish(metadata, Existing::Refuse));
    written.map_err(|error| PlanError::Mismatch { path: own, reason: error.to_string() })?;
    Ok(Some(iteration))
}

/// Returns whether no rank works on a plan any more: it is not new, and no rank has locked its journal.
fn is_abandoned(save_path: &SavePath, id: IterationId, iteration: u64, path: &Path) -> bool {
    let age =
        std::fs::metadata(path).and_then(|file| file.modified()).ok().and_then(|time| time.elapsed().ok());
    let is_new = age.is_some_and(|age| age < MIN_ABANDONED_AGE);
    let files = save_path.files(id.split).unwrap_or_default();
    let journals = files.iter().filter(|file| file.id.iteration == iteration);
    !is_new && !journals.into_iter().any(|file| store::journal::is_being_written(&file.path))
}

/// Renames a plan that no rank may join any more. Nothing is deleted.
pub(super) fn set_aside(path: &Path) -> Result<(), PlanError> {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.6fZ").to_string();
    std::fs::rename(path, store::layout::set_aside_path(path, &time))
        .map_err(|source| PlanError::io("set aside", path, source))
}
