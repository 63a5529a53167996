//! Reads the trajectory file of an iteration: a `.pt` file of ours or of the Python system, or a journal. Summaries
//! are kept in memory, trajectories are read on request.

use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;

use crate::journal::{self, JournalReader, LocatedRecord, Scan};
use crate::layout::{FileKind, FoundFile, IterationId, SavePath, Split};
use crate::pt::{PtError, PtFile};
use crate::run_record::RunMetadata;
use crate::summary::Summary;

/// An open trajectory file.
#[derive(Debug)]
pub struct IterationFile {
    path: PathBuf,
    content: Content,
    summaries: Vec<Summary>,
    metadata: RunMetadata,
}

#[derive(Debug)]
enum Content {
    Pt(Box<PtFile>),
    Journal { scan: Box<Scan>, records: Vec<LocatedRecord> },
}

impl IterationFile {
    /// Opens a file as a journal or as a `.pt` file, depending on its first bytes.
    pub fn open(path: &Path) -> Result<Self, PtError> {
        if is_journal(path)? { Self::open_journal(path) } else { Self::open_pt(path) }
    }

    pub fn open_found(found: &FoundFile) -> Result<Self, PtError> {
        match found.kind {
            FileKind::Finished => Self::open_pt(&found.path),
            FileKind::Journal | FileKind::SetAside => Self::open_journal(&found.path),
        }
    }

    fn open_pt(path: &Path) -> Result<Self, PtError> {
        let file = PtFile::open(path)?;
        let (summaries, metadata) =
            if let (Some(entries), Some(metadata)) = (file.entries(), file.own_metadata()) {
                (entries.iter().map(|entry| entry.summary.clone()).collect(), metadata.clone())
            } else {
                let mut trajectories = file.trajectories()?;
                let summaries = trajectories
                    .by_ref()
                    .map(|trajectory| trajectory.map(|trajectory| Summary::of(&trajectory)))
                    .collect::<Result<_, _>>()?;
                (summaries, trajectories.metadata()?)
            };
        Ok(Self { path: path.to_path_buf(), content: Content::Pt(Box::new(file)), summaries, metadata })
    }

    fn open_journal(path: &Path) -> Result<Self, PtError> {
        let scan = journal::scan(path)?;
        let records: Vec<LocatedRecord> = scan.finished.values().cloned().collect();
        let summaries = records.iter().map(|record| record.summary.clone()).collect();
        let metadata = scan.run.as_ref().map(|run| run.metadata.clone()).unwrap_or_default();
        let content = Content::Journal { scan: Box::new(scan), records };
        Ok(Self { path: path.to_path_buf(), content, summaries, metadata })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Summaries in file order; for a journal, in the order of the trajectory indices.
    pub fn summaries(&self) -> &[Summary] {
        &self.summaries
    }

    pub const fn metadata(&self) -> &RunMetadata {
        &self.metadata
    }

    /// The scan of the journal; `None` for a `.pt` file.
    pub fn scan(&self) -> Option<&Scan> {
        match &self.content {
            Content::Journal { scan, .. } => Some(scan),
            Content::Pt(_) => None,
        }
    }

    /// Reads the trajectory whose summary is at `position` of `summaries`.
    pub fn read(&self, position: usize) -> Result<Trajectory, PtError> {
        match &self.content {
            Content::Pt(file) => file.read(position),
            Content::Journal { records, .. } => {
                let record = records.get(position).ok_or_else(|| PtError::Shape {
                    path: self.path.clone(),
                    position,
                    reason: format!("the file has only {} trajectories", records.len()),
                })?;
                Ok(journal::read_finished(&mut JournalReader::open(&self.path)?, record)?)
            }
        }
    }

    /// Reads all trajectories in the order of `summaries`, one at a time.
    pub fn trajectories(
        &self,
    ) -> Result<Box<dyn Iterator<Item = Result<Trajectory, PtError>> + '_>, PtError> {
        Ok(match &self.content {
            Content::Pt(file) => Box::new(file.trajectories()?),
            Content::Journal { records, .. } => {
                let mut reader = JournalReader::open(&self.path)?;
                Box::new(records.iter().map(move |record| Ok(journal::read_finished(&mut reader, record)?)))
            }
        })
    }
}

/// Whether a file begins like a journal: eight hexadecimal digits, a space and a brace.
fn is_journal(path: &Path) -> Result<bool, PtError> {
    use std::io::Read;
    let mut beginning = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| PtError::io("open", path, error))?;
    file.take(10).read_to_end(&mut beginning).map_err(|error| PtError::io("read", path, error))?;
    Ok(matches!(beginning[..], [.., b' ', b'{']) && beginning.len() == 10)
}

/// The current files of one iteration: the merged file, or the rank files and the journals of unfinished ranks.
pub fn files_of(save_path: &SavePath, split: Split, iteration: u64) -> std::io::Result<Vec<FoundFile>> {
    let of_iteration = |file: &FoundFile| file.id.iteration == iteration;
    let files: Vec<FoundFile> = save_path.files(split)?.into_iter().filter(of_iteration).collect();
    let merged = FoundFile::find_finished(&files, IterationId::new(split, iteration));
    if let Some(merged) = merged {
        return Ok(vec![merged.clone()]);
    }
    let is_current = |file: &&FoundFile| match file.kind {
        FileKind::Finished => true,
        FileKind::Journal => FoundFile::find_finished(&files, file.id).is_none(),
        FileKind::SetAside => false,
    };
    Ok(files.iter().filter(is_current).cloned().collect())
}

/// The numbers of the iterations of a split that have files, in ascending order.
pub fn iterations(save_path: &SavePath, split: Split) -> std::io::Result<Vec<u64>> {
    let files = save_path.files(split)?;
    let mut numbers: Vec<u64> =
        files.iter().filter(|file| file.kind != FileKind::SetAside).map(|file| file.id.iteration).collect();
    numbers.dedup();
    Ok(numbers)
}

/// The summaries in all files of one iteration, in the order of the trajectory indices.
pub fn summaries_of(save_path: &SavePath, split: Split, iteration: u64) -> Result<Vec<Summary>, PtError> {
    let list = || files_of(save_path, split, iteration);
    let files = open_all(save_path, split, list, IterationFile::open_found)?;
    let mut summaries: Vec<Summary> = files.into_iter().flat_map(|file| file.summaries).collect();
    summaries.sort_by_key(|summary| summary.trajectory_index);
    Ok(summaries)
}

/// Opens the files that `list` returns. Lists them again if one disappeared, because other ranks may be turning their
/// journals into finished files.
pub(crate) fn open_all<T>(
    save_path: &SavePath,
    split: Split,
    list: impl Fn() -> std::io::Result<Vec<FoundFile>>,
    open: impl Fn(&FoundFile) -> Result<T, PtError>,
) -> Result<Vec<T>, PtError> {
    const MAX_RETRIES: usize = 8;
    let mut retries = 0;
    loop {
        let found = list().map_err(|error| PtError::io("list", &save_path.split_directory(split), error))?;
        let opened = found.iter().map(|file| open(file).map_err(|error| (error, file.path.exists())));
        match opened.collect::<Result<Vec<_>, _>>() {
            Ok(files) => return Ok(files),
            Err((_, false)) if retries < MAX_RETRIES => retries += 1,
            Err((error, _)) => return Err(error),
        }
    }
}

impl FoundFile {
    fn find_finished(files: &[Self], id: IterationId) -> Option<&Self> {
        files.iter().find(|file| file.kind == FileKind::Finished && file.id == id)
    }
}
