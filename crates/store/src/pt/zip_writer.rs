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
        let mut table = Vec::new();
        self.records.iter().for_each(|record| record.write_central(&mut table));
        let (count, length) = (self.records.len() as u64, table.len() as u64);
        if start + length > u64::from(u32::MAX) {
            let end = start + length;
            put(&mut table, &CENTRAL_END_64.to_le_bytes());
            put(&mut table, &44u64.to_le_bytes());
            put(&mut table, &[VERSION.to_le_bytes(), VERSION.to_le_bytes()].concat());
            put(&mut table, &[0; 8]);
            for number in [count, count, length, start] {
                put(&mut table, &number.to_le_bytes());
            }
            put(&mut table, &CENTRAL_LOCATOR_64.to_le_bytes());
            put(&mut table, &[0; 4]);
            put(&mut table, &end.to_le_bytes());
            put(&mut table, &1u32.to_le_bytes());
        }
        put(&mut table, &CENTRAL_END.to_le_bytes());
        put(&mut table, &[0; 4]);
        for number in [count as u16, count as u16] {
            put(&mut table, &number.to_le_bytes());
        }
        put(&mut table, &(length as u32).to_le_bytes());
        put(&mut table, &narrow(start).to_le_bytes());
        put(&mut table, &[0; 2]);
        self.write(&table)?;
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

    fn sizes(&self) -> [u32; 2] {
        let (length, compressed_length) = (self.length, self.compressed_length);
        [compressed_length, length].map(|size| if self.is_large() { IN_EXTRA } else { size as u32 })
    }

    /// Returns the header in front of the record, with space for 64-bit sizes.
    fn local_header(&self) -> Vec<u8> {
        let mut header = LOCAL_HEADER.to_le_bytes().to_vec();
        self.write_common(&mut header);
        let extra_length: u16 = 20;
        put(&mut header, &extra_length.to_le_bytes());
        put(&mut header, self.name.as_bytes());
        let extra = if self.is_large() { EXTRA_64 } else { EXTRA_PADDING };
        put(&mut header, &[extra.to_le_bytes(), (extra_length - 4).to_le_bytes()].concat());
        let sizes = if self.is_large() { [self.length, self.compressed_length] } else { [0; 2] };
        sizes.iter().for_each(|size| put(&mut header, &size.to_le_bytes()));
        header
    }

    fn write_central(&self, table: &mut Vec<u8>) {
        put(table, &CENTRAL_HEADER.to_le_bytes());
        put(table, &VERSION.to_le_bytes());
        self.write_common(table);
        let mut large = Vec::new();
        if self.is_large() {
            large.extend([self.length, self.compressed_length]);
        }
        if self.offset >= u64::from(IN_EXTRA) {
            large.push(self.offset);
        }
        let extra_length = if large.is_empty() { 0 } else { 4 + 8 * large.len() as u16 };
        put(table, &extra_length.to_le_bytes());
        // No comment, one disk, no attributes.
        put(table, &[0; 10]);
        put(table, &narrow(self.offset).to_le_bytes());
        put(table, self.name.as_bytes());
        if !large.is_empty() {
            put(table, &[EXTRA_64.to_le_bytes(), (extra_length - 4).to_le_bytes()].concat());
            large.iter().for_each(|number| put(table, &number.to_le_bytes()));
        }
    }

    /// Writes the fields that both headers have.
    fn write_common(&self, to: &mut Vec<u8>) {
        for field in [VERSION, 0, DEFLATED, 0, DATE] {
            put(to, &field.to_le_bytes());
        }
        put(to, &self.checksum.clone().finalize().to_le_bytes());
        self.sizes().iter().for_each(|size| put(to, &size.to_le_bytes()));
        put(to, &(self.name.len() as u16).to_le_bytes());
    }
}

fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(bytes);
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
