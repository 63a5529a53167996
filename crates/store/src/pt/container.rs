//! What a `.pt` file is wrapped in: PyTorch's zip container under any archive name, its older sequence of pickles, or
//! a bare pickle. Finds the pickle and opens it as a stream, as often as it is asked for.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crc32fast::Hasher;
use flate2::bufread::DeflateDecoder;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::PtError;
use super::index::{self, Index};
use crate::unpickle::{self, Limits, PickleError, Value};

/// The archive name of our own files; PyTorch uses this one, or the name of the file.
pub(super) const ARCHIVE: &str = "archive";
pub(super) const PICKLE: &str = "data.pkl";
pub(super) const INDEX: &str = "webgym_index.jsonl";

/// A pickled number that announces PyTorch's format from before the zip container, and its version.
const LEGACY_MAGIC: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
const LEGACY_VERSION: i128 = 1001;
/// Compression beyond that is no honest file; PyTorch does not compress at all.
const MAX_RATIO: u64 = 200;
const MAX_INDEX: u64 = 1 << 30;

#[derive(Clone, Debug)]
pub(super) enum Container {
    Zip(Record),
    /// Pickles one after the other; the fourth is the content.
    Legacy {
        length: u64,
    },
    Bare {
        length: u64,
    },
}

/// An entry of a zip file, found in its directory.
#[derive(Clone, Debug)]
pub(super) struct Record {
    name: String,
    start: u64,
    compressed: u64,
    length: u64,
    checksum: u32,
    is_deflated: bool,
}

/// A stream of pickle bytes and how many there are at most.
pub(super) struct Input {
    pub(super) reader: Box<dyn BufRead + Send>,
    pub(super) length: u64,
}

impl Container {
    pub(super) fn find(path: &Path) -> Result<Self, PtError> {
        let mut file = open(path)?;
        let failed = |error| PtError::io("read", path, error);
        let mut beginning = Vec::new();
        file.by_ref().take(64).read_to_end(&mut beginning).map_err(failed)?;
        if beginning.starts_with(b"PK\x03\x04") {
            return find_in_zip(path, file);
        }
        if beginning.first() != Some(&0x80) {
            let reason = "it is neither PyTorch's archive nor a pickle of protocol 2 or later".to_owned();
            return Err(PtError::Container { path: path.to_path_buf(), reason });
        }
        let length = file.metadata().map_err(failed)?.len();
        let is_legacy = beginning.windows(LEGACY_MAGIC.len()).any(|part| part == LEGACY_MAGIC);
        Ok(if is_legacy { Self::Legacy { length } } else { Self::Bare { length } })
    }

    /// The pickle from its beginning.
    pub(super) fn open(&self, path: &Path) -> Result<Input, PtError> {
        let file = open(path)?;
        match self {
            Self::Zip(record) => record.open(path, file),
            Self::Bare { length } => Ok(Input { reader: Box::new(start(path, file)?), length: *length }),
            Self::Legacy { length } => {
                let mut reader = start(path, file)?;
                let failed = |source| PtError::Pickle { path: path.to_path_buf(), source };
                let mut next =
                    || unpickle::load_from(&mut reader, *length, Limits::default()).map_err(failed);
                let _magic = next()?;
                if !matches!(next()?, Value::Int(LEGACY_VERSION)) {
                    return Err(failed(PickleError::Malformed("an unknown version of PyTorch's old format")));
                }
                let _system = next()?;
                Ok(Input { reader: Box::new(reader), length: *length })
            }
        }
    }

    /// Where the pickle lies in the file, when it lies there as it is.
    pub(super) const fn data_start(&self) -> Option<u64> {
        match self {
            Self::Zip(record) if !record.is_deflated => Some(record.start),
            _ => None,
        }
    }
}

pub(super) fn open(path: &Path) -> Result<File, PtError> {
    File::open(path).map_err(|error| PtError::io("open", path, error))
}

fn start(path: &Path, mut file: File) -> Result<BufReader<File>, PtError> {
    file.seek(SeekFrom::Start(0)).map_err(|error| PtError::io("read", path, error))?;
    Ok(BufReader::with_capacity(1 << 18, file))
}

fn archive(path: &Path, file: File) -> Result<ZipArchive<BufReader<File>>, PtError> {
    ZipArchive::new(start(path, file)?).map_err(|error| bad(path, &error))
}

fn bad(path: &Path, error: &ZipError) -> PtError {
    PtError::Container { path: path.to_path_buf(), reason: error.to_string() }
}

fn find_in_zip(path: &Path, file: File) -> Result<Container, PtError> {
    let mut archive = archive(path, file)?;
    let suffix = format!("/{PICKLE}");
    let refuse = |reason: &str| PtError::Container { path: path.to_path_buf(), reason: reason.to_owned() };
    let names = archive.file_names().flatten().map(std::borrow::Cow::into_owned);
    let mut found: Vec<String> = names.filter(|name| name.ends_with(&suffix) || name == PICKLE).collect();
    let name = found.pop().ok_or_else(|| refuse("the archive has no data.pkl"))?;
    if !found.is_empty() {
        return Err(refuse("the archive has more than one data.pkl"));
    }
    let entry = archive.by_name(&name).map_err(|error| bad(path, &error))?;
    let is_deflated = match entry.compression() {
        CompressionMethod::Stored if entry.size() == entry.compressed_size() => false,
        CompressionMethod::Deflated => true,
        _ => return Err(refuse("data.pkl is packed in a way that PyTorch does not use")),
    };
    let (length, compressed) = (entry.size(), entry.compressed_size());
    if length > compressed.saturating_mul(MAX_RATIO).saturating_add(16 << 20) {
        return Err(refuse("data.pkl is compressed beyond belief"));
    }
    let start = entry.data_start().ok_or_else(|| refuse("the place of data.pkl is not known"))?;
    Ok(Container::Zip(Record { start, compressed, length, checksum: entry.crc32(), is_deflated, name }))
}

impl Record {
    fn open(&self, path: &Path, mut file: File) -> Result<Input, PtError> {
        file.seek(SeekFrom::Start(self.start)).map_err(|error| PtError::io("read", path, error))?;
        let raw = BufReader::with_capacity(1 << 18, file.take(self.compressed));
        let content: Box<dyn Read + Send> =
            if self.is_deflated { Box::new(DeflateDecoder::new(raw)) } else { Box::new(raw) };
        let checked = Checked { content, hasher: Hasher::new(), expected: self.checksum, left: self.length };
        Ok(Input { reader: Box::new(BufReader::with_capacity(1 << 18, checked)), length: self.length })
    }
}

/// Passes on exactly the announced bytes and verifies their checksum when the last of them is read.
struct Checked<R> {
    content: R,
    hasher: Hasher,
    expected: u32,
    left: u64,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.content.read(&mut buffer[..most])?;
        self.hasher.update(&buffer[..count]);
        self.left -= count as u64;
        if count > 0 && self.left == 0 && self.hasher.clone().finalize() != self.expected {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the checksum of data.pkl does not match",
            ));
        }
        Ok(count)
    }
}

/// The table of contents of one of our own files.
pub(super) fn read_index(path: &Path, container: &Container) -> Option<Index> {
    let Container::Zip(Record { name, length, is_deflated: false, .. }) = container else { return None };
    let prefix = name.strip_suffix(PICKLE)?;
    let mut archive = archive(path, open(path).ok()?).ok()?;
    let entry = archive.by_name(&format!("{prefix}{INDEX}")).ok()?;
    let reader = BufReader::with_capacity(1 << 16, entry.take(MAX_INDEX));
    index::read(reader, *length)
}
