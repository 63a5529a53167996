//! The index that our own files have next to the pickle: the position and summary of each trajectory. PyTorch ignores
//! it, and files written by PyTorch have none.

use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::run_record::RunMetadata;
use crate::summary::Summary;

pub(super) const FORMAT: u32 = 1;

/// The first line of the index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: u32,
    /// Length of the start of the pickle, which defines the class and attribute names that all trajectories share.
    pub(super) names: u64,
    pub(super) trajectories: u64,
    pub(super) metadata: RunMetadata,
}

/// A trajectory of a `.pt` file: its position in the pickle and its summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PtEntry {
    pub offset: u64,
    pub length: u64,
    /// Where its compressed data begins, in files that are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed_offset: Option<u64>,
    pub summary: Summary,
}

#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) header: Header,
    pub(super) entries: Vec<PtEntry>,
}

pub(super) fn write<W: Write>(output: &mut W, header: &Header, entries: &[PtEntry]) -> std::io::Result<()> {
    write_line(output, header)?;
    entries.iter().try_for_each(|entry| write_line(output, entry))
}

fn write_line<W: Write, T: Serialize>(output: &mut W, value: &T) -> std::io::Result<()> {
    serde_json::to_writer(&mut *output, value)?;
    output.write_all(b"\n")
}

/// Returns `None` if the index has an unknown format or does not match a pickle of the given length.
pub(super) fn read<R: BufRead>(input: R, pickle_length: u64) -> Option<Index> {
    let mut lines = input.lines();
    let header: Header = serde_json::from_str(&lines.next()?.ok()?).ok()?;
    let mut entries = Vec::new();
    for line in lines {
        let entry: PtEntry = serde_json::from_str(&line.ok()?).ok()?;
        if entry.offset.checked_add(entry.length)? > pickle_length {
            return None;
        }
        entries.push(entry);
    }
    let is_consistent = header.format == FORMAT
        && header.names <= pickle_length
        && header.trajectories == entries.len() as u64;
    is_consistent.then_some(Index { header, entries })
}
