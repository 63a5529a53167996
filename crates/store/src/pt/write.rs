//! Writes a `.pt` file trajectory by trajectory, in memory of one of them, and gives it its name only when all of it is
//! durable.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::container::{ARCHIVE, INDEX, PICKLE};
use super::index::{self, Header, PtEntry};
use super::{PtError, PtFile};
use crate::durable::{AtomicFile, Existing};
use crate::journal::{self, JournalReader};
use crate::pickle::{self, Pickler, TooLong};
use crate::run::RunMetadata;
use crate::summary::Summary;

/// A `.pt` file in the making. Dropped before `finish`, it leaves nothing behind.
pub struct PtWriter {
    path: PathBuf,
    zip: ZipWriter<AtomicFile>,
    pickler: Pickler,
    names: u64,
    /// Bytes of the pickle that are in the file.
    written: u64,
    entries: Vec<PtEntry>,
}

impl PtWriter {
    pub fn create(path: &Path) -> Result<Self, PtError> {
        let file = AtomicFile::create(path).map_err(|error| PtError::io("create", path, error))?;
        let mut pickler = Pickler::default();
        let names = pickle::begin(&mut pickler).map_err(|error| too_long(path, error))? as u64;
        let zip = ZipWriter::new(file);
        let mut writer =
            Self { path: path.to_path_buf(), zip, pickler, names, written: 0, entries: Vec::new() };
        // How large the pickle gets is not known yet: leave room for the 64-bit sizes.
        writer.begin_record(PICKLE, true)?;
        writer.write_out()?;
        Ok(writer)
    }

    pub fn push(&mut self, trajectory: &Trajectory) -> Result<(), PtError> {
        pickle::trajectory(&mut self.pickler, trajectory).map_err(|error| too_long(&self.path, error))?;
        let length = self.pickler.buffer.len() as u64;
        self.entries.push(PtEntry { offset: self.written, length, summary: Summary::of(trajectory) });
        self.pickler.append();
        self.write_out()
    }

    /// How many trajectories it has so far.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes what PyTorch expects beside the pickle, makes the file durable and gives it its name.
    pub fn finish(mut self, metadata: &RunMetadata, existing: Existing) -> Result<(), PtError> {
        pickle::end(&mut self.pickler, metadata).map_err(|error| too_long(&self.path, error))?;
        self.write_out()?;
        let header = Header {
            format: index::FORMAT,
            names: self.names,
            trajectories: self.entries.len() as u64,
            metadata: metadata.clone(),
        };
        let identity = format!("{:020}{:020}", self.written, self.entries.len());
        self.record("byteorder", b"little")?;
        self.record("version", b"3\n")?;
        self.record(".data/serialization_id", identity.as_bytes())?;
        self.begin_record(INDEX, true)?;
        index::write(&mut self.zip, &header, &self.entries).map_err(|error| self.failed(error))?;
        let Self { path, zip, .. } = self;
        let file = zip.finish().map_err(|error| PtError::io("write", &path, error.into()))?;
        file.commit(existing).map_err(|error| PtError::io("finish", &path, error))
    }

    fn write_out(&mut self) -> Result<(), PtError> {
        let written = self.zip.write_all(&self.pickler.buffer);
        written.map_err(|error| self.failed(error))?;
        self.written += self.pickler.buffer.len() as u64;
        self.pickler.buffer.clear();
        Ok(())
    }

    fn record(&mut self, name: &str, content: &[u8]) -> Result<(), PtError> {
        self.begin_record(name, false)?;
        self.zip.write_all(content).map_err(|error| self.failed(error))
    }

    /// Records are stored as they are and begin at multiples of 64, as PyTorch wants to map them.
    fn begin_record(&mut self, name: &str, is_large: bool) -> Result<(), PtError> {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .large_file(is_large)
            .with_alignment(64);
        let begun = self.zip.start_file(format!("{ARCHIVE}/{name}"), options);
        begun.map_err(|error| self.failed(error.into()))
    }

    fn failed(&self, error: io::Error) -> PtError {
        PtError::io("write", &self.path, error)
    }
}

fn too_long(path: &Path, error: TooLong) -> PtError {
    PtError::Encode { path: path.to_path_buf(), reason: error.to_string() }
}

/// Turns a journal into a `.pt` file, in the order of the trajectory indices. Answers how many there were.
pub fn write_from_journal(journal: &Path, target: &Path, existing: Existing) -> Result<usize, PtError> {
    let scan = journal::scan(journal)?;
    let mut reader = JournalReader::open(journal)?;
    let mut writer = PtWriter::create(target)?;
    for located in scan.finished.values() {
        writer.push(&journal::read_finished(&mut reader, located)?)?;
    }
    let metadata = scan.run.map(|run| run.metadata).unwrap_or_default();
    let count = writer.len();
    writer.finish(&metadata, existing)?;
    Ok(count)
}

/// Writes a `.pt` file again with every trajectory passed through `change`; `None` leaves one out. The old file stays
/// as it is until the new one is complete.
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
