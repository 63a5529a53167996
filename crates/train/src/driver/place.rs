//! Where a loop begins: at the state that an earlier one left, or where the files of the save path say, which may come from
//! the original's scripts.

use std::path::Path;

use store::loop_state::{FORMAT, IterationState, LoopState, LoopStatus, Phase, PhaseStatus};
use store::{IterationId, SavePath, Split};

use super::PlaceError;
use crate::checkpoint::Checkpoints;
use crate::config::LoopConfig;
use crate::{original, schedule};

/// Returns the state to continue with.
pub(super) fn find(
    config: &LoopConfig,
    save_path: &SavePath,
    checkpoints: &Checkpoints,
    saved: Option<LoopState>,
    resume: bool,
) -> Result<LoopState, PlaceError> {
    let mut state = match saved {
        Some(state) if resume => resumed(config, state),
        Some(state) => return Err(not_resumed(config, save_path, &state)),
        None => from_files(config, save_path, checkpoints)?,
    };
    state.run_id = format!("{}-{}", std::process::id(), jiff::Timestamp::now().as_nanosecond());
    Ok(state)
}

fn not_resumed(config: &LoopConfig, save_path: &SavePath, state: &LoopState) -> PlaceError {
    if state.status == LoopStatus::Finished {
        return PlaceError::AllDone { iterations: config.iterations };
    }
    let iteration = state.current().map_or(state.first_iteration, |iteration| iteration.number);
    PlaceError::Unfinished { save_path: save_path.root().to_owned(), iteration }
}

/// Continues a state. If all is done, the loop may have been killed before it recorded that, so this is no error.
fn resumed(config: &LoopConfig, mut state: LoopState) -> LoopState {
    state.iterations_planned = config.iterations;
    // After more iterations were asked for, the closing one becomes one that trains.
    if let Some(last) = state.iterations.last_mut() {
        let planned = schedule::phases(config, last.number);
        let missing: Vec<Phase> = planned.filter(|phase| last.phase(*phase).is_none()).collect();
        last.phases.extend(missing.into_iter().map(store::loop_state::PhaseState::new));
        last.phases.sort_by_key(|phase| phase.phase);
        schedule::resume(last);
    }
    if schedule::next(&state, config) == schedule::Next::Finished {
        tracing::info!(
            "all {} iterations are done; set `iterations` to a higher number to continue",
            config.iterations
        );
    }
    (state.status, state.reason) = (LoopStatus::Running, None);
    state.dead_ranks.clear();
    state
}

/// Finds the place from the files: after the last iteration that was collected, or, if no checkpoint is newer than that one, at
/// the training on it.
fn from_files(
    config: &LoopConfig,
    save_path: &SavePath,
    checkpoints: &Checkpoints,
) -> Result<LoopState, PlaceError> {
    take_over(save_path, checkpoints)?;
    let list_error = |source| PlaceError::List { save_path: save_path.root().to_owned(), source };
    let next = save_path.next_iteration(Split::Train, None).map_err(list_error)?;
    let current = checkpoints.current().map(|(path, _)| path);
    let model = current.as_ref().map(|path| path.display().to_string()).or_else(|| config.model.clone());
    let model = model.ok_or_else(|| PlaceError::NoModel { checkpoint: checkpoints.link() })?;
    let mut state = LoopState {
        format: FORMAT,
        status: LoopStatus::Running,
        reason: None,
        run_id: String::new(),
        first_iteration: config.first_iteration.max(next),
        iterations_planned: config.iterations,
        iterations: Vec::new(),
        dead_ranks: Vec::new(),
        last_failure: None,
    };
    let collected = next.checked_sub(1).filter(|last| *last >= config.first_iteration);
    let file = |number| save_path.iteration_file(IterationId::new(Split::Train, number));
    if let Some(iteration) = collected.filter(|number| !file(*number).exists()) {
        return Err(PlaceError::NotMerged { save_path: save_path.root().to_owned(), iteration });
    }
    if let Some(number) = collected
        && is_newer(&file(number), current.as_deref())
    {
        tracing::info!(
            "iteration {number} was collected and not trained on yet: the loop begins with its training"
        );
        state.first_iteration = number;
        state.iterations.push(collected_iteration(config, number, model));
    }
    let number = state.current().map_or(state.first_iteration, |iteration| iteration.number);
    if schedule::is_closing(config, number) {
        return Err(PlaceError::AllDone { iterations: config.iterations });
    }
    Ok(state)
}

/// Prepares what the original's scripts left when they were interrupted: a checkpoint that they had not copied to `model.pt`
/// becomes the current one, and an unfinished collection, which only they could continue, is set aside.
fn take_over(save_path: &SavePath, checkpoints: &Checkpoints) -> Result<(), PlaceError> {
    if let Some(trained) = original::uncopied_checkpoint(save_path, checkpoints) {
        tracing::info!(
            "{} was not copied to {} yet: it becomes the current model",
            trained.display(),
            checkpoints.link().display()
        );
        checkpoints.switch_to(&trained)?;
    }
    for split in [Split::Train, Split::Test] {
        let list_error = |source| PlaceError::List { save_path: save_path.root().to_owned(), source };
        for path in save_path.set_aside_unfinished_of_original(split).map_err(list_error)? {
            tracing::warn!(
                "the unfinished collection of the original is now {}: its iteration is collected again",
                path.display()
            );
        }
    }
    Ok(())
}

fn collected_iteration(config: &LoopConfig, number: u64, model: String) -> IterationState {
    let mut iteration = IterationState::new(number, model, schedule::phases(config, number));
    for phase in &mut iteration.phases {
        if matches!(phase.phase, Phase::Serve | Phase::Collect | Phase::Evaluate) {
            phase.status = PhaseStatus::Skipped;
            phase.reason = Some("collected before this loop".to_owned());
        }
    }
    iteration
}

fn is_newer(iteration_file: &Path, checkpoint: Option<&Path>) -> bool {
    let Some(checkpoint) = checkpoint else { return true };
    matches!((original::changed(iteration_file), original::changed(checkpoint)), (Some(file), Some(folder)) if file > folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files {
        _folder: tempfile::TempDir,
        save_path: SavePath,
        checkpoints: Checkpoints,
        config: LoopConfig,
    }

    impl Files {
        fn new(first_iteration: u64) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let save_path = SavePath::new(folder.path());
            let checkpoints = Checkpoints::new(save_path.clone(), "model.pt");
            let config = LoopConfig { first_iteration, model: Some("base".into()), ..LoopConfig::default() };
            Self { _folder: folder, save_path, checkpoints, config }
        }

        fn collected(&self, number: u64, age_secs: u64) {
            let path = self.save_path.iteration_file(IterationId::new(Split::Train, number));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = std::fs::File::create(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(age_secs))
                .unwrap();
        }

        fn find(&self, saved: Option<LoopState>, resume: bool) -> Result<LoopState, PlaceError> {
            find(&self.config, &self.save_path, &self.checkpoints, saved, resume)
        }
    }

    #[test]
    fn empty_save_path_begins_with_the_configured_model() {
        let mut files = Files::new(1);
        let state = files.find(None, false).unwrap();
        assert_eq!((state.first_iteration, state.iterations.len()), (1, 0));
        files.config.model = None;
        let error = files.find(None, false).unwrap_err().to_string();
        assert!(error.contains("set `model`") && error.contains("model.pt"), "{error}");
    }

    #[test]
    fn interrupted_run_of_the_original_is_continued() {
        let files = Files::new(1);
        files.collected(1, 100);
        std::fs::create_dir(files.checkpoints.link()).unwrap();
        files.collected(2, 0);
        std::fs::File::open(files.checkpoints.link())
            .unwrap()
            .set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(50))
            .unwrap();
        let state = files.find(None, false).unwrap();
        let iteration = state.current().unwrap();
        assert_eq!((iteration.number, iteration.current().unwrap().phase), (2, Phase::Export));
        assert_eq!(iteration.model, files.checkpoints.link().display().to_string());
    }

    #[test]
    fn checkpoint_that_the_original_did_not_copy_becomes_current() {
        let files = Files::new(1);
        files.collected(1, 100);
        let trained = files.save_path.checkpoints().join("model_20250115_143022/checkpoint-7");
        std::fs::create_dir_all(&trained).unwrap();
        std::fs::write(trained.join("config.json"), r#"{"model_type":"x"}"#).unwrap();
        let header = r#"{"a":{"data_offsets":[0,4]}}"#;
        let weights = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]].concat();
        std::fs::write(trained.join("model.safetensors"), weights).unwrap();
        // The script was killed while it copied.
        std::fs::create_dir(files.checkpoints.link()).unwrap();
        let state = files.find(None, false).unwrap();
        assert_eq!((state.first_iteration, state.iterations.len()), (2, 0), "iteration 1 was trained");
        assert_eq!(files.checkpoints.current().unwrap().0, trained);
        assert!(files.checkpoints.folder_of_others().is_dir(), "what it had copied is kept");
    }

    #[test]
    fn unmerged_ranks_are_refused_with_the_command_that_merges_them() {
        let files = Files::new(1);
        files.collected(1, 100);
        let path = files.save_path.iteration_file(IterationId::new(Split::Train, 2).with_rank(Some(0)));
        std::fs::write(path, b"").unwrap();
        let error = files.find(None, false).unwrap_err().to_string();
        assert!(error.contains("webgym aggregate") && error.contains("--iteration 2"), "{error}");
    }

    #[test]
    fn trained_iteration_is_followed_by_the_next() {
        let files = Files::new(0);
        files.collected(0, 100);
        std::fs::create_dir(files.checkpoints.link()).unwrap();
        let state = files.find(None, false).unwrap();
        assert_eq!((state.first_iteration, state.iterations.len()), (1, 0));
    }

    #[test]
    fn unfinished_loop_needs_resume_and_finished_one_more_iterations() {
        let mut files = Files::new(0);
        files.config.iterations = 1;
        let mut state = files.find(None, false).unwrap();
        state.iterations.push(IterationState::new(0, "base".into(), schedule::phases(&files.config, 0)));
        let error = files.find(Some(state.clone()), false).unwrap_err().to_string();
        assert!(error.contains("--resume"), "{error}");
        let mut closing = IterationState::new(1, "new".into(), schedule::phases(&files.config, 1));
        closing.phases.iter_mut().for_each(|phase| phase.status = PhaseStatus::Done);
        state.iterations.push(closing);
        state.status = LoopStatus::Finished;
        assert!(matches!(files.find(Some(state.clone()), false), Err(PlaceError::AllDone { .. })));
        let done = files.find(Some(state.clone()), true).unwrap();
        assert_eq!(schedule::next(&done, &files.config), schedule::Next::Finished);
        files.config.iterations = 2;
        let continued = files.find(Some(state), true).unwrap();
        assert_eq!(continued.current().unwrap().current().unwrap().phase, Phase::Serve);
        assert_eq!(continued.current().unwrap().phases.len(), 6, "collect, export, train, … were added");
    }
}
