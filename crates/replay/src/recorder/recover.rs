//! Reads what is already in a directory: cuts off an incomplete record at the end of a file and collects the digests of
//! payloads.

use std::{collections::HashMap, fs::File, path::Path};

use super::write::Original;
use crate::{
    ArchiveError, layout,
    warc::{Limits, ReadRecord, WarcReader},
};

/// What was found at the end of a file when a directory was opened for recording.
#[derive(Debug)]
pub struct Recovered {
    pub problem: ArchiveError,
    /// The length of the incomplete record that was cut off. `None` for other damage, which is not repaired.
    pub removed_bytes: Option<u64>,
}

/// Recovery keeps no blocks.
const LIMITS: Limits = Limits { max_block: 0, max_header: 1 << 20 };

pub(super) fn recover(directory: &Path) -> Result<(Vec<Recovered>, HashMap<String, Original>), ArchiveError> {
    let (mut recovered, mut originals) = (Vec::new(), HashMap::new());
    for path in layout::warc_files(directory)? {
        // A file that another process is writing is not ours to change, and its payloads may still be cut off.
        let file = File::options().write(true).open(&path).map_err(ArchiveError::io("open", &path))?;
        if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
            continue;
        }
        if let Some(found) = recover_file(&path, &file, &mut originals)? {
            recovered.push(found);
        }
    }
    Ok((recovered, originals))
}

fn recover_file(
    path: &Path,
    file: &File,
    originals: &mut HashMap<String, Original>,
) -> Result<Option<Recovered>, ArchiveError> {
    let mut reader = WarcReader::open(path, LIMITS)?;
    loop {
        let end = reader.offset();
        match reader.next() {
            None => return Ok(None),
            Some(Ok(record)) => originals.extend(original_of(&record)),
            Some(Err(problem)) if problem.is_truncation() => {
                let cut = || {
                    let length = file.metadata()?.len();
                    file.set_len(end)?;
                    file.sync_all()?;
                    Ok(length - end)
                };
                let removed = cut().map_err(ArchiveError::io("cut off the incomplete end of", path))?;
                return Ok(Some(Recovered { problem, removed_bytes: Some(removed) }));
            }
            Some(Err(problem)) => return Ok(Some(Recovered { problem, removed_bytes: None })),
        }
    }
}

/// Only our own digests are of use: others have other algorithms or encodings.
fn original_of(record: &ReadRecord) -> Option<(String, Original)> {
    let header = &record.header;
    if header.kind() != "response" || !record.problems.is_empty() {
        return None;
    }
    let digest = header.get("WARC-Payload-Digest").filter(|digest| digest.starts_with("sha256:"))?;
    let original =
        Original { id: header.id().to_owned(), url: header.target()?.to_owned(), date: header.date()? };
    Some((digest.to_owned(), original))
}
