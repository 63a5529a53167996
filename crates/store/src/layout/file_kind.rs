//! File names in the directory of a split, and how to parse them.

use std::path::{Path, PathBuf};

use super::{IterationId, Split};

pub(super) const JOURNAL_SUFFIX: &str = ".checkpoint";
pub(super) const PLAN_SUFFIX: &str = ".plan.json";
/// The Python system reads every file whose name starts like that of an iteration, so those of a journal or plan that was
/// set aside must not.
const SET_ASIDE_PREFIX: &str = "set_aside_";

/// The state of an iteration that a file name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// `….iterationN`: complete.
    Finished,
    /// `….iterationN.checkpoint`: the journal of a running or interrupted run.
    Journal,
    /// `set_aside_….iterationN.checkpoint.<time>`: a journal that was renamed so that a new run could start.
    SetAside,
}

/// A trajectory file found in the directory of a split.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundFile {
    pub id: IterationId,
    pub kind: FileKind,
    pub path: PathBuf,
}

/// Parses the name of a trajectory file. Returns `None` for any other name, such as that of a temporary file.
pub(super) fn parse_file_name(split: Split, name: &str) -> Option<(IterationId, FileKind)> {
    let name = name.strip_prefix(SET_ASIDE_PREFIX).unwrap_or(name);
    let rest = name.strip_prefix(split.as_str())?.strip_prefix("_trajectories.pt.iteration")?;
    let (number, kind) = match rest.split_once(JOURNAL_SUFFIX) {
        None => (rest, FileKind::Finished),
        Some((number, "")) => (number, FileKind::Journal),
        // The selected tasks and acknowledgments, see `selection_path` and `acknowledged_path`.
        Some((_, rest)) if rest.rsplit('.').next() == Some("json") => return None,
        Some((number, time)) if time.starts_with('.') => (number, FileKind::SetAside),
        Some(_) => return None,
    };
    let (iteration, rank) = match number.split_once("_rank_") {
        None => (number, None),
        Some((iteration, rank)) => (iteration, Some(only_digits(rank)?.parse().ok()?)),
    };
    let iteration = only_digits(iteration)?.parse().ok()?;
    Some((IterationId { split, iteration, rank }, kind))
}

/// Returns the path to which a journal or plan is renamed when it is set aside.
pub fn set_aside_path(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{SET_ASIDE_PREFIX}{name}.{suffix}"))
}

/// Returns the path of the file with the tasks that a run selected, which is beside its journal.
pub fn selection_path(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".tasks.json");
    name.into()
}

/// Returns the path of the file with what the consumer of a run's stream has acknowledged, which is beside its journal.
pub fn acknowledged_path(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".acknowledged.json");
    name.into()
}

/// Rejects what `parse` would accept and we never write, such as `+1`.
fn only_digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_file_names_parse_back() {
        for rank in [None, Some(0), Some(17)] {
            let id = IterationId::new(Split::Train, 12).with_rank(rank);
            assert_eq!(parse_file_name(Split::Train, &id.file_name()), Some((id, FileKind::Finished)));
            let journal = format!("{}.checkpoint", id.file_name());
            assert_eq!(parse_file_name(Split::Train, &journal), Some((id, FileKind::Journal)));
            let set_aside = set_aside_path(Path::new(&journal), "20260101T000000Z");
            assert!(!set_aside.to_string_lossy().starts_with("train_trajectories"));
            // Version 0.1 had no prefix.
            for name in [set_aside.to_str().unwrap(), &format!("{journal}.20260101T000000Z")] {
                assert_eq!(parse_file_name(Split::Train, name), Some((id, FileKind::SetAside)), "{name}");
            }
            for beside in [selection_path(Path::new(&journal)), acknowledged_path(Path::new(&journal))] {
                assert_eq!(parse_file_name(Split::Train, beside.to_str().unwrap()), None);
            }
        }
    }

    #[test]
    fn other_file_names_are_ignored() {
        for name in ["train_trajectories.pt.iteration", "train_trajectories.pt.iteration+1", "x"] {
            assert_eq!(parse_file_name(Split::Train, name), None);
        }
        for name in ["train_trajectories.pt.iteration1.tmp", "train_trajectories.pt.iteration1_rank_"] {
            assert_eq!(parse_file_name(Split::Train, name), None);
        }
        assert_eq!(parse_file_name(Split::Test, "train_trajectories.pt.iteration1"), None);
    }
}
