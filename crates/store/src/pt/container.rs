//! The container of a `.pt` file: PyTorch's zip archive, its older sequence of pickles, or a bare pickle. Finds the
//! pickle in it and opens it as a stream.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crc32fast::Hasher;
use flate2::bufread::DeflateDecoder;
use zip::read::{ArchiveOffset, Config};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::PtError;
use super::index::{self, Index};
use crate::unpickle::{self, PickleError, UnpickleLimits, Value};

/// The archive name in our own files. PyTorch uses the same name or the name of the file.
pub(super) const ARCHIVE: &str = "archive";
pub(super) const PICKLE: &str = "data.pkl";
pub(super) const INDEX: &str = "webgym_index.jsonl";

/// The pickled magic number at the start of PyTorch's format from before the zip archive.
const LEGACY_MAGIC: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
const LEGACY_VERSION: i128 = 1001;
/// Files with a higher compression ratio are refused as decompression bombs; PyTorch does not compress, and we compress less.
const MAX_COMPRESSION_RATIO: u64 = 200;
const MAX_INDEX_BYTES: u64 = 1 << 30;

/// The kind of a container and where its pickle is.
#[derive(Clone, Debug)]
pub(super) enum Container {
    Zip(ZipEntry),
    /// A sequence of pickles; the fourth is the content.
    Legacy {
        length: u64,
    },
    Bare {
        length: u64,
    },
}

/// The position of `data.pkl` in a zip archive.
#[derive(Clone, Debug)]
pub(super) struct ZipEntry {
    name: String,
    start: u64,
    compressed_length: u64,
    length: u64,
    checksum: u32,
    is_deflated: bool,
}

/// A stream of pickle bytes and its maximum length.
pub(super) struct Input {
    pub(super) reader: Box<dyn BufRead + Send>,
    pub(super) length: u64,
}

impl Container {
    pub(super) fn find(path: &Path) -> Result<Self, PtError> {
        let mut file = open(path)?;
        let read_error = |error| PtError::io("read", path, error);
        let mut beginning = Vec::new();
        file.by_ref().take(64).read_to_end(&mut beginning).map_err(read_error)?;
        if beginning.starts_with(b"PK\x03\x04") {
            return find_in_zip(path, file);
        }
        if beginning.first() != Some(&0x80) {
            let reason = "it is neither a PyTorch archive nor a pickle of protocol 2 or later".to_owned();
            return Err(PtError::Container { path: path.to_path_buf(), reason });
        }
        let length = file.metadata().map_err(read_error)?.len();
        let is_legacy = beginning.windows(LEGACY_MAGIC.len()).any(|part| part == LEGACY_MAGIC);
        Ok(if is_legacy { Self::Legacy { length } } else { Self::Bare { length } })
    }

    /// Opens the pickle at its beginning.
    pub(super) fn open(&self, path: &Path) -> Result<Input, PtError> {
        let file = open(path)?;
        match self {
            Self::Zip(entry) => entry.open(path, file),
            Self::Bare { length } => {
                Ok(Input { reader: Box::new(buffer_from_start(path, file)?), length: *length })
            }
            Self::Legacy { length } => {
                let mut reader = buffer_from_start(path, file)?;
                let pickle_error = |source| PtError::Pickle { path: path.to_path_buf(), source };
                let mut next = || {
                    unpickle::load_from(&mut reader, *length, UnpickleLimits::default()).map_err(pickle_error)
                };
                let _magic = next()?;
                if !matches!(next()?, Value::Int(LEGACY_VERSION)) {
                    return Err(pickle_error(PickleError::Malformed(
                        "unknown version of PyTorch's old format",
                    )));
                }
                let _system_info = next()?;
                Ok(Input { reader: Box::new(reader), length: *length })
            }
        }
    }

    /// Reads parts of the pickle in a zip archive, each given by its position in the pickle, in the compressed data, and its
    /// length. Returns `None` for other containers, and if a position is not known.
    pub(super) fn read_parts(
        &self,
        path: &Path,
        parts: &[(u64, Option<u64>, u64)],
    ) -> Option<Result<Vec<u8>, PtError>> {
        let Self::Zip(entry) = self else { return None };
        let position = |(offset, compressed, length): &(u64, Option<u64>, u64)| {
            Some((entry.start + if entry.is_deflated { (*compressed)? } else { *offset }, *length))
        };
        let parts = parts.iter().map(position).collect::<Option<Vec<_>>>()?;
        let read = |mut file: File| {
            let mut bytes = Vec::new();
            for (position, length) in parts {
                file.seek(SeekFrom::Start(position))?;
                let raw = BufReader::with_capacity(1 << 16, &mut file);
                if entry.is_deflated {
                    DeflateDecoder::new(raw).take(length).read_to_end(&mut bytes)?;
                } else {
                    raw.take(length).read_to_end(&mut bytes)?;
                }
            }
            Ok(bytes)
        };
        Some(open(path).and_then(|file| read(file).map_err(|error| PtError::io("read", path, error))))
    }
}

pub(super) fn open(path: &Path) -> Result<File, PtError> {
    File::open(path).map_err(|error| PtError::io("open", path, error))
}

fn buffer_from_start(path: &Path, mut file: File) -> Result<BufReader<File>, PtError> {
    file.seek(SeekFrom::Start(0)).map_err(|error| PtError::io("read", path, error))?;
    Ok(BufReader::with_capacity(1 << 18, file))
}

/// Opens an archive that begins at the start of the file. The crate would otherwise guess that position, and for some
/// lengths of the file's name it guesses wrong in files of PyTorch, whose 64-bit records lack the usual markers.
fn open_archive(path: &Path, file: File) -> Result<ZipArchive<BufReader<File>>, PtError> {
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    ZipArchive::with_config(config, buffer_from_start(path, file)?).map_err(|error| zip_error(path, &error))
}

fn zip_error(path: &Path, error: &ZipError) -> PtError {
    PtError::Container { path: path.to_path_buf(), reason: error.to_string() }
}

fn find_in_zip(path: &Path, file: File) -> Result<Container, PtError> {
    let mut archive = open_archive(path, file)?;
    let suffix = format!("/{PICKLE}");
    let refuse = |reason: &str| PtError::Container { path: path.to_path_buf(), reason: reason.to_owned() };
    let names = archive.file_names().flatten().map(std::borrow::Cow::into_owned);
    let mut found: Vec<String> = names.filter(|name| name.ends_with(&suffix) || name == PICKLE).collect();
    let name = found.pop().ok_or_else(|| refuse("the archive has no data.pkl"))?;
    if !found.is_empty() {
        return Err(refuse("the archive has more than one data.pkl"));
    }
    let entry = archive.by_name(&name).map_err(|error| zip_error(path, &error))?;
    let is_deflated = match entry.compression() {
        CompressionMethod::Stored if entry.size() == entry.compressed_size() => false,
        CompressionMethod::Deflated => true,
        _ => return Err(refuse("data.pkl has a compression method that PyTorch does not use")),
    };
    let (length, compressed_length) = (entry.size(), entry.compressed_size());
    if length > compressed_length.saturating_mul(MAX_COMPRESSION_RATIO).saturating_add(16 << 20) {
        return Err(refuse("data.pkl expands to far more than its compressed size"));
    }
    let start = entry.data_start().ok_or_else(|| refuse("the position of data.pkl is unknown"))?;
    Ok(Container::Zip(ZipEntry {
        start,
        compressed_length,
        length,
        checksum: entry.crc32(),
        is_deflated,
        name,
    }))
}

impl ZipEntry {
    fn open(&self, path: &Path, mut file: File) -> Result<Input, PtError> {
        file.seek(SeekFrom::Start(self.start)).map_err(|error| PtError::io("read", path, error))?;
        let raw = BufReader::with_capacity(1 << 18, file.take(self.compressed_length));
        let content: Box<dyn Read + Send> =
            if self.is_deflated { Box::new(DeflateDecoder::new(raw)) } else { Box::new(raw) };
        let checked = ChecksumReader {
            content,
            hasher: Hasher::new(),
            expected: self.checksum,
            remaining: self.length,
        };
        Ok(Input { reader: Box::new(BufReader::with_capacity(1 << 18, checked)), length: self.length })
    }
}

/// Reads exactly the declared number of bytes and verifies their checksum after the last one.
struct ChecksumReader<R> {
    content: R,
    hasher: Hasher,
    expected: u32,
    remaining: u64,
}

impl<R: Read> Read for ChecksumReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = buffer.len().min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        let count = self.content.read(&mut buffer[..limit])?;
        self.hasher.update(&buffer[..count]);
        self.remaining -= count as u64;
        if count > 0 && self.remaining == 0 && self.hasher.clone().finalize() != self.expected {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the checksum of data.pkl does not match",
            ));
        }
        Ok(count)
    }
}

/// Reads the index, which only our own files have.
pub(super) fn read_index(path: &Path, container: &Container) -> Option<Index> {
    let Container::Zip(ZipEntry { name, length, .. }) = container else { return None };
    let prefix = name.strip_suffix(PICKLE)?;
    let mut archive = open_archive(path, open(path).ok()?).ok()?;
    let entry = archive.by_name(&format!("{prefix}{INDEX}")).ok()?;
    let reader = BufReader::with_capacity(1 << 16, entry.take(MAX_INDEX_BYTES));
    index::read(reader, *length)
}
