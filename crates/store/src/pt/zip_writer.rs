//! Writes the zip archive of a `.pt` file. Records are deflated in chunks that can be decompressed on their own, which lets a
//! reader start in the middle of a record.

use std::io::{self, Seek, SeekFrom, Write};

use crc32fast::Hasher;
use flate2::{Compress, Compression, FlushCompress, Status};

/// Readers refuse higher ratios as decompression bombs. A chunk beyond this one is stored.
const MAX_CHUNK_RATIO: usize = 100;
/// An empty last block, which ends a deflated record.
const LAST_BLOCK: &[u8] = &[3, 0];
const LOCAL_HEADER: u32 = 0x0403_4b50;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const CENTRAL_END: u32 = 0x0605_4b50;
const CENTRAL_END_64: u32 = 0x0606_4b50;
const CENTRAL_LOCATOR_64: u32 = 0x0706_4b50;
/// The version of the format that has 64-bit sizes.
const VERSION: u16 = 45;
const DEFLATED: u16 = 8;
/// 1980-01-01, the earliest date.
const DATE: u16 = 0x21;
const EXTRA_64: u16 = 1;
/// Marks padding, as in PyTorch's own files.
const EXTRA_PADDING: u16 = 0x4246;
/// A value that is in the 64-bit field instead.
const IN_EXTRA: u32 = u32::MAX;

#[derive(Default)]
struct Record {
    name: String,
    /// The position of its header in the file.
    offset: u64,
    length: u64,
    compressed_length: u64,
    checksum: Hasher,
}

/// A zip archive that is being written.
pub(super) struct ZipWriter<W> {
    file: W,
    position: u64,
    records: Vec<Record>,
}

impl<W: Write + Seek> ZipWriter<W> {
    pub(super) const fn new(file: W) -> Self {
        Self { file, position: 0, records: Vec::new() }
    }

    pub(super) fn begin(&mut self, name: String) -> io::Result<()> {
        let record = Record { name, offset: self.position, ..Record::default() };
        // The sizes are not known yet.
        let header = record.local_header();
        self.records.push(record);
        self.write(&header)
    }

    /// Adds to the current record. Returns where the chunk begins in its compressed data.
    pub(super) fn write_chunk(&mut self, content: &[u8]) -> io::Result<u64> {
        let mut chunk = deflate(content, Compression::fast())?;
        if content.len() / MAX_CHUNK_RATIO > chunk.len() {
            chunk = deflate(content, Compression::none())?;
        }
        let Some(record) = self.records.last_mut() else {
            return Err(io::Error::other("no record has begun"));
        };
        let start = record.compressed_length;
        record.length += content.len() as u64;
        record.compressed_length += chunk.len() as u64;
        record.checksum.update(content);
        self.write(&chunk)?;
        Ok(start)
    }

    /// Ends the current record and completes its header.
    pub(super) fn end(&mut self) -> io::Result<()> {
        let Some(record) = self.records.last_mut() else { return Ok(()) };
        record.compressed_length += LAST_BLOCK.len() as u64;
        let (offset, header) = (record.offset, record.local_header());
        self.write(LAST_BLOCK)?;
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(&header)?;
        self.file.seek(SeekFrom::Start(self.position)).map(drop)
    }

    /// Writes the table of contents.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let start = self.position;
        let mut table = Fields::default();
        for record in &self.records {
            table.bytes(&record.central_header());
        }
        let (count, length) = (self.records.len() as u64, table.0.len() as u64);
        if start + length >= u64::from(IN_EXTRA) {
            // The size of the rest of this header, the versions, and the numbers of disks.
            table.u32(CENTRAL_END_64).u64(44).u16(VERSION).u16(VERSION).u64(0);
            table.u64(count).u64(count).u64(length).u64(start);
            // The number of the disk with that header, its position, and the number of disks.
            table.u32(CENTRAL_LOCATOR_64).u32(0).u64(start + length).u32(1);
        }
        table.u32(CENTRAL_END).u32(0).u16(count as u16).u16(count as u16);
        // No comment follows.
        table.u32(length as u32).u32(narrow(start)).u16(0);
        self.write(&table.0)?;
        Ok(self.file)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.position += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

impl Record {
    fn is_large(&self) -> bool {
        self.length.max(self.compressed_length) >= u64::from(IN_EXTRA)
    }

    /// Returns the header in front of the record, with space for 64-bit sizes.
    fn local_header(&self) -> Vec<u8> {
        let mut header = Fields::default();
        header.u32(LOCAL_HEADER);
        self.write_common(&mut header);
        header.u16(20).bytes(self.name.as_bytes());
        if self.is_large() {
            header.u16(EXTRA_64).u16(16).u64(self.length).u64(self.compressed_length);
        } else {
            header.u16(EXTRA_PADDING).u16(16).u64(0).u64(0);
        }
        header.0
    }

    /// Returns the entry of the record in the table of contents.
    fn central_header(&self) -> Vec<u8> {
        let mut large = Fields::default();
        if self.is_large() {
            large.u64(self.length).u64(self.compressed_length);
        }
        if self.offset >= u64::from(IN_EXTRA) {
            large.u64(self.offset);
        }
        let mut extra = Fields::default();
        if !large.0.is_empty() {
            extra.u16(EXTRA_64).u16(large.0.len() as u16).bytes(&large.0);
        }
        let mut header = Fields::default();
        header.u32(CENTRAL_HEADER).u16(VERSION);
        self.write_common(&mut header);
        // No comment, the first disk, no attributes.
        header.u16(extra.0.len() as u16).u16(0).u16(0).u16(0).u32(0);
        header.u32(narrow(self.offset)).bytes(self.name.as_bytes()).bytes(&extra.0);
        header.0
    }

    /// Writes the fields that both headers have.
    fn write_common(&self, header: &mut Fields) {
        let size = |size: u64| if self.is_large() { IN_EXTRA } else { size as u32 };
        header.u16(VERSION).u16(0).u16(DEFLATED).u16(0).u16(DATE);
        header.u32(self.checksum.clone().finalize());
        header.u32(size(self.compressed_length)).u32(size(self.length)).u16(self.name.len() as u16);
    }
}

/// The fields of a header.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u16(&mut self, number: u16) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    fn u32(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    fn u64(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }
}

fn narrow(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(IN_EXTRA)
}

/// Compresses to blocks that end with a whole byte, so that others can follow.
fn deflate(content: &[u8], level: Compression) -> io::Result<Vec<u8>> {
    let mut compress = Compress::new(level, false);
    let mut output = Vec::with_capacity(content.len() / 4 + 64);
    loop {
        let rest = &content[compress.total_in() as usize..];
        let status =
            compress.compress_vec(rest, &mut output, FlushCompress::Sync).map_err(io::Error::other)?;
        // All of it is written if there is space left.
        if compress.total_in() as usize == content.len() && output.len() < output.capacity() {
            return Ok(output);
        }
        if status == Status::StreamEnd {
            return Err(io::Error::other("the compressed data ended early"));
        }
        output.reserve(output.len().max(1024));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use zip::ZipArchive;
    use zip::read::{ArchiveOffset, Config};

    use super::*;

    #[test]
    fn records_behind_four_gigabytes_are_found() {
        for start in [0, 5 << 30] {
            let mut file = tempfile::tempfile().unwrap();
            file.seek(SeekFrom::Start(start)).unwrap();
            let mut writer = ZipWriter { file, position: start, records: Vec::new() };
            for (name, chunks) in [("a", ["one", "two"]), ("b", ["three", ""])] {
                writer.begin(name.to_owned()).unwrap();
                for chunk in chunks {
                    writer.write_chunk(chunk.as_bytes()).unwrap();
                }
                writer.end().unwrap();
            }
            let config = Config { archive_offset: ArchiveOffset::Known(0) };
            let mut archive = ZipArchive::with_config(config, writer.finish().unwrap()).unwrap();
            for (name, expected) in [("a", "onetwo"), ("b", "three")] {
                let mut content = String::new();
                archive.by_name(name).unwrap().read_to_string(&mut content).unwrap();
                assert_eq!(content, expected);
            }
        }
    }

    #[test]
    fn sizes_above_four_gigabytes_are_in_the_extra_field() {
        let record = Record { length: 6 << 30, compressed_length: 5 << 30, ..Record::default() };
        let large = [(6u64 << 30).to_le_bytes(), (5u64 << 30).to_le_bytes()].concat();
        for header in [record.local_header(), record.central_header()] {
            assert!(header.ends_with(&large) && header.windows(8).any(|part| part == [0xff; 8]));
        }
    }
}
