//! Writes a `.pt` file one trajectory at a time. Only one trajectory is in memory, and the file gets its final name
//! when it is complete and durable.

use std::io;
use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;

use super::container::{ARCHIVE, INDEX, PICKLE};
use super::index::{self, Header, PtEntry};
use super::zip_writer::ZipWriter;
use super::{PtError, PtFile};
use crate::durable::{AtomicFile, Existing};
use crate::pickle::{self, Pickler, TextTooLong};
use crate::run_record::RunMetadata;
use crate::summary::Summary;

/// A `.pt` file that is being written. If it is dropped before `finish`, it leaves nothing behind.
pub struct PtWriter {
    path: PathBuf,
    zip: ZipWriter<AtomicFile>,
    pickler: Pickler,
    /// Length of the start of the pickle, which defines the class and attribute names that all trajectories share.
    names: u64,
    /// Number of pickle bytes in the file so far.
    written: u64,
    entries: Vec<PtEntry>,
}

impl PtWriter {
    pub fn create(path: &Path) -> Result<Self, PtError> {
        let file = AtomicFile::create(path).map_err(|error| PtError::io("create", path, error))?;
        let mut pickler = Pickler::default();
        let names = pickle::begin_file(&mut pickler).map_err(|error| encode_error(path, error))? as u64;
        let zip = ZipWriter::new(file);
        let mut writer =
            Self { path: path.to_path_buf(), zip, pickler, names, written: 0, entries: Vec::new() };
        writer.zip.begin(record_name(PICKLE)).map_err(|error| writer.write_error(error))?;
        writer.flush_pickle()?;
        Ok(writer)
    }

    pub fn push(&mut self, trajectory: &Trajectory) -> Result<(), PtError> {
        pickle::write_trajectory(&mut self.pickler, trajectory)
            .map_err(|error| encode_error(&self.path, error))?;
        let (offset, length) = (self.written, self.pickler.buffer.len() as u64);
        self.pickler.append();
        let compressed_offset = Some(self.flush_pickle()?);
        let summary = Summary::of(trajectory);
        self.entries.push(PtEntry { offset, length, compressed_offset, summary });
        Ok(())
    }

    /// The number of trajectories so far.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes the other records that PyTorch expects, makes the file durable and gives it its final name.
    pub fn finish(mut self, metadata: &RunMetadata, existing: Existing) -> Result<(), PtError> {
        pickle::end_file(&mut self.pickler, metadata).map_err(|error| encode_error(&self.path, error))?;
        self.flush_pickle()?;
        let header = Header {
            format: index::FORMAT,
            names: self.names,
            trajectories: self.entries.len() as u64,
            metadata: metadata.clone(),
        };
        let serialization_id = format!("{:020}{:020}", self.written, self.entries.len());
        self.zip.end().map_err(|error| self.write_error(error))?;
        let mut index = Vec::new();
        index::write(&mut index, &header, &self.entries).map_err(|error| self.write_error(error))?;
        let records: [(&str, &[u8]); 4] = [
            ("byteorder", b"little"),
            ("version", b"3\n"),
            (".data/serialization_id", serialization_id.as_bytes()),
            (INDEX, &index),
        ];
        for (name, content) in records {
            self.write_record(name, content).map_err(|error| self.write_error(error))?;
        }
        let Self { path, zip, .. } = self;
        let file = zip.finish().map_err(|error| PtError::io("write", &path, error))?;
        file.commit(existing).map_err(|error| PtError::io("finish", &path, error))
    }

    /// Returns where the compressed data begins.
    fn flush_pickle(&mut self) -> Result<u64, PtError> {
        let written = self.zip.write_chunk(&self.pickler.buffer);
        let compressed_offset = written.map_err(|error| self.write_error(error))?;
        self.written += self.pickler.buffer.len() as u64;
        self.pickler.buffer.clear();
        Ok(compressed_offset)
    }

    fn write_record(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        self.zip.begin(record_name(name))?;
        self.zip.write_chunk(content)?;
        self.zip.end()
    }

    fn write_error(&self, error: io::Error) -> PtError {
        PtError::io("write", &self.path, error)
    }
}

fn record_name(name: &str) -> String {
    format!("{ARCHIVE}/{name}")
}

fn encode_error(path: &Path, error: TextTooLong) -> PtError {
    PtError::Encode { path: path.to_path_buf(), reason: error.to_string() }
}

/// Rewrites a `.pt` file with every trajectory passed through `change`; trajectories for which it returns `None` are
/// removed. The old file stays until the new one is complete. Returns the number of trajectories.
pub fn rewrite<F>(path: &Path, mut change: F) -> Result<usize, PtError>
where
    F: FnMut(Trajectory) -> Option<Trajectory>,
{
    let file = PtFile::open(path)?;
    let mut trajectories = file.trajectories()?;
    let mut writer = PtWriter::create(path)?;
    for trajectory in &mut trajectories {
        if let Some(trajectory) = change(trajectory?) {
            writer.push(&trajectory)?;
        }
    }
    let metadata = trajectories.metadata()?;
    let count = writer.len();
    writer.finish(&metadata, Existing::Replace)?;
    Ok(count)
}
