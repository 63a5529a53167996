//! File names in the directory of a split, and how to parse them.

use std::path::PathBuf;

use super::{IterationId, Split};

pub(super) const JOURNAL_SUFFIX: &str = ".checkpoint";
pub(super) const PLAN_SUFFIX: &str = ".plan.json";

/// The state of an iteration that a file name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// `….iterationN`: complete.
    Finished,
    /// `….iterationN.checkpoint`: the journal of a running or interrupted run.
    Journal,
    /// `….iterationN.checkpoint.<time>`: a journal that was renamed so that a new run could start.
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
    let rest = name.strip_prefix(split.as_str())?.strip_prefix("_trajectories.pt.iteration")?;
    let (number, kind) = match rest.split_once(JOURNAL_SUFFIX) {
        None => (rest, FileKind::Finished),
        Some((number, "")) => (number, FileKind::Journal),
        // Runs keep `….checkpoint.tasks.json` and similar files next to their journal.
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
            let set_aside = format!("{journal}.20260101T000000Z");
            assert_eq!(parse_file_name(Split::Train, &set_aside), Some((id, FileKind::SetAside)));
            let tasks = format!("{journal}.tasks.json");
            assert_eq!(parse_file_name(Split::Train, &tasks), None);
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
