//! Resumes an interrupted run from its journal, its selection file and, where there are several ranks, their shared plan.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use proto::trajectory::Outcome;
use store::{
    Journal, JournalError, RunRecord, SavePath, Split,
    journal::{JournalReader, LocatedRecord, Record},
    layout::{FileKind, FoundFile, acknowledged_path, selection_path},
};

use super::{
    Plan, PlanError, SharedPlan, Unfinished, joining,
    prepare::is_shared,
    ranks::Ranks,
    sampler::{Selected, Selection},
    selection::{SelectionFile, config_digest, max_steps},
    tasks::TaskFile,
};
use crate::{config::Config, episode::screenshots};

/// Finds the journal to resume. An unfinished journal that is not to be resumed is set aside or refused.
pub(super) fn find(
    save_path: &SavePath,
    split: Split,
    rank: Option<u32>,
    unfinished: &Unfinished,
) -> Result<Option<PathBuf>, PlanError> {
    let listing_error = |source| PlanError::io("list", save_path.root(), source);
    let found = save_path.unfinished_journal(split, rank).map_err(listing_error)?;
    match (unfinished, found) {
        (Unfinished::ResumeFrom(path), _) => return Ok(Some(path.clone())),
        (Unfinished::Resume, Some(found)) => return Ok(Some(found.path)),
        (Unfinished::Refuse, Some(found)) => return Err(unfinished_error(&found.path)),
        (Unfinished::SetAside, Some(found)) => {
            set_plan_aside(save_path, &found)?;
            set_journal_aside(&found.path)?;
        }
        (_, None) => {}
    }
    if let (Unfinished::Resume, Some(rank)) = (unfinished, rank)
        && let Some(found) = save_path.superseded_journal(split, rank).map_err(listing_error)?
    {
        if found.kind == FileKind::SetAside {
            std::fs::remove_file(&found.path)
                .map_err(|source| PlanError::io("remove", &found.path, source))?;
        } else {
            set_journal_aside(&found.path)?;
        }
        return Err(PlanError::MergedWithout { iteration: found.id.iteration });
    }
    Ok(None)
}

/// Renames a journal together with the files beside it, so that it can still be resumed by name.
fn set_journal_aside(journal: &Path) -> Result<(), PlanError> {
    let aside = store::journal::set_aside(journal)?;
    let _ = std::fs::rename(selection_path(journal), selection_path(&aside));
    let _ = std::fs::rename(acknowledged_path(journal), acknowledged_path(&aside));
    Ok(())
}

/// Sets the shared plan of a journal aside, unless a newer plan has replaced it.
fn set_plan_aside(save_path: &SavePath, journal: &FoundFile) -> Result<(), PlanError> {
    let path = save_path.plan(journal.id.split, journal.id.iteration);
    let Some(plan) = SharedPlan::read(&path)? else { return Ok(()) };
    let first = JournalReader::open(&journal.path)?.next();
    let own = match first.and_then(Result::ok).map(|entry| entry.record) {
        Some(Ok(Record::Run(header))) => run_id(&header.run).map(str::to_owned),
        _ => None,
    };
    if own.is_some_and(|own| own == plan.run_id) { joining::set_aside(&path) } else { Ok(()) }
}

/// Returns the id that identifies the run of a record; only runs with a shared plan have one.
fn run_id(run: &RunRecord) -> Option<&str> {
    run.metadata.extra.get(store::aggregate::RUN_ID)?.as_str()
}

fn unfinished_error(path: &Path) -> PlanError {
    if store::journal::is_being_written(path) {
        return JournalError::Locked { path: path.to_owned() }.into();
    }
    let (finished, tasks) = store::journal::scan(path)
        .map_or((0, 0), |scan| (scan.finished.len() as u64, scan.run.map_or(0, |run| run.tasks)));
    PlanError::Unfinished(JournalError::Unfinished { path: path.to_owned(), finished, tasks })
}

/// What a run is resumed from.
pub(super) struct Resumable<'a> {
    pub(super) config: &'a Config,
    pub(super) save_path: SavePath,
    pub(super) ranks: Ranks,
    pub(super) journal: &'a Path,
}

impl Resumable<'_> {
    pub(super) fn resume(self) -> Result<Plan, PlanError> {
        let Self { config, save_path, ranks, journal: path } = self;
        let mismatch = |reason: String| PlanError::Mismatch { path: path.to_owned(), reason };
        let chosen = SelectionFile::read(path)?;
        let (journal, recovered) = Journal::resume(path)?;
        screenshots::discard_abandoned(&save_path.images(), &recovered.scan);
        let file = TaskFile::open(&chosen.dataset, true)?;
        let tasks: Vec<Selected> = chosen.selected().collect();
        if tasks.iter().any(|selected| selected.entry_index >= file.entries().len()) {
            return Err(mismatch(format!("{} now has fewer tasks", chosen.dataset.display())));
        }
        let total = tasks.len();
        let selection = Selection { tasks, notes: Vec::new(), total: chosen.total };
        let mut tasks = selection.load(&file, max_steps(config))?;
        tasks.retain(|task| !recovered.finished.contains(&task.trajectory_index));
        let outcome = |located: &LocatedRecord| located.summary.outcome_or_inferred();
        let finished: BTreeMap<i64, Outcome> =
            recovered.scan.finished.iter().map(|(index, located)| (*index, outcome(located))).collect();
        let mut notes = vec![format!(
            "resuming {}: {} of {total} trajectories are finished",
            path.display(),
            finished.len()
        )];
        if recovered.truncated_bytes > 0 {
            notes.push(format!(
                "{} bytes of an incomplete last record were removed; its episode is collected again",
                recovered.truncated_bytes
            ));
        }
        let run = recovered.run;
        if run.config_digest != config_digest(config) {
            notes.push("the configuration has changed since the run began; tasks and order stay".into());
        }
        let shared = if is_shared(config, &ranks) { shared_plan_of(&save_path, &run, path)? } else { None };
        let group_size = chosen.group_size;
        let id = run.id();
        let attempts = selection.attempts();
        Ok(Plan {
            id,
            run,
            save_path,
            ranks,
            tasks,
            attempts,
            finished,
            total,
            group_size,
            journal,
            shared,
            notes,
        })
    }
}

/// Returns the shared plan of a resumed rank. Journals from before there were shared plans have none.
fn shared_plan_of(
    save_path: &SavePath,
    run: &RunRecord,
    journal: &Path,
) -> Result<Option<SharedPlan>, PlanError> {
    let Some(own) = run_id(run) else { return Ok(None) };
    let path = save_path.plan(run.split, run.iteration);
    match SharedPlan::read(&path)? {
        Some(plan) if plan.run_id == own => Ok(Some(plan)),
        found => {
            let problem = if found.is_some() { "belongs to another run" } else { "does not exist" };
            let path = path.display();
            let reason =
                format!("{path} {problem}; the run was merged, or a new one was started, without this rank");
            Err(PlanError::Mismatch { path: journal.to_owned(), reason })
        }
    }
}
