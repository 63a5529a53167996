//! Finds the files of the ranks of an iteration and determines which ranks have finished.

use crate::layout::{FileKind, FoundFile, IterationId, SavePath, Split};

/// The progress of the ranks of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankStatus {
    pub finished: Vec<FoundFile>,
    pub unfinished: Vec<u32>,
    pub missing: Vec<u32>,
}

pub fn rank_status(
    save_path: &SavePath,
    split: Split,
    iteration: u64,
    ranks: Option<u32>,
) -> std::io::Result<RankStatus> {
    let files: Vec<FoundFile> =
        save_path.files(split)?.into_iter().filter(|file| file.id.iteration == iteration).collect();
    let with = |kind: FileKind| files.iter().filter(move |file| file.kind == kind && file.id.rank.is_some());
    let finished: Vec<FoundFile> = with(FileKind::Finished).cloned().collect();
    let is_finished = |rank: u32| finished.iter().any(|file| file.id.rank == Some(rank));
    let unfinished: Vec<u32> =
        with(FileKind::Journal).filter_map(|file| file.id.rank).filter(|rank| !is_finished(*rank)).collect();
    let highest = files.iter().filter_map(|file| file.id.rank).max();
    let count = ranks.or(highest.map(|rank| rank + 1)).unwrap_or(0);
    let missing = (0..count).filter(|rank| !is_finished(*rank) && !unfinished.contains(rank)).collect();
    Ok(RankStatus { finished, unfinished, missing })
}

/// The files of an iteration before merging: finished files, and journals of ranks without one. A run without ranks
/// has a single file.
pub fn files_of_run(save_path: &SavePath, split: Split, iteration: u64) -> std::io::Result<Vec<FoundFile>> {
    let mut files: Vec<FoundFile> = save_path.files(split)?;
    files.retain(|file| file.id.iteration == iteration && file.kind != FileKind::SetAside);
    let has_ranks = files.iter().any(|file| file.id.rank.is_some());
    files.retain(|file| file.id.rank.is_some() == has_ranks);
    let finished: Vec<IterationId> =
        files.iter().filter(|file| file.kind == FileKind::Finished).map(|file| file.id).collect();
    files.retain(|file| file.kind == FileKind::Finished || !finished.contains(&file.id));
    Ok(files)
}

/// The files of an iteration that belong to a rank.
pub(super) fn rank_files(
    save_path: &SavePath,
    split: Split,
    iteration: u64,
) -> std::io::Result<Vec<FoundFile>> {
    let mut files = files_of_run(save_path, split, iteration)?;
    files.retain(|file| file.id.rank.is_some());
    Ok(files)
}
