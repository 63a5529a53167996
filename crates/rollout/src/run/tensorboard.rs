//! Writes scalars as TensorBoard event files. A file is a sequence of records; each consists of a length, a protocol buffer
//! message (`Event`) and checksums of both.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use crc32c::crc32c;

/// An event file of one run.
pub struct EventFile {
    file: File,
}

impl EventFile {
    /// Creates a file in `folder` with the name that TensorBoard expects.
    pub fn create(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let name = format!("events.out.tfevents.{}.webgym.{}", now() as u64, std::process::id());
        let file = OpenOptions::new().create(true).append(true).open(folder.join(name))?;
        let mut events = Self { file };
        events.write(&event(0, |out| text(out, 3, "brain.Event:2")))?;
        Ok(events)
    }

    /// Appends the values of a step as one record.
    pub fn append_scalars(&mut self, step: i64, values: &[(String, f64)]) -> io::Result<()> {
        let mut summary = Vec::new();
        for (tag, value) in values {
            let mut scalar = Vec::new();
            text(&mut scalar, 1, tag);
            scalar.push(2 << 3 | 5);
            scalar.extend((*value as f32).to_le_bytes());
            bytes(&mut summary, 1, &scalar);
        }
        self.write(&event(step, |out| bytes(out, 5, &summary)))?;
        self.file.flush()
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(data.len() + 16);
        record.extend(length);
        record.extend(masked(crc32c(&length)).to_le_bytes());
        record.extend(data);
        record.extend(masked(crc32c(data)).to_le_bytes());
        self.file.write_all(&record)
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Encodes an `Event` message: the time, the step, and one further field.
fn event(step: i64, write_field: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![1 << 3 | 1];
    out.extend(now().to_le_bytes());
    out.push(2 << 3);
    varint(&mut out, step as u64);
    write_field(&mut out);
    out
}

/// Appends a variable-length integer of the protocol buffer encoding.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length-delimited field.
fn bytes(out: &mut Vec<u8>, field: u8, data: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, data.len() as u64);
    out.extend(data);
}

fn text(out: &mut Vec<u8>, field: u8, text: &str) {
    bytes(out, field, text.as_bytes());
}

/// Masks a checksum as the record format requires.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_crc32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn records_are_framed_and_contain_values() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = EventFile::create(folder.path()).unwrap();
        events.append_scalars(3, &[("train/success_rate".into(), 0.5)]).unwrap();
        let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let data = std::fs::read(path).unwrap();
        let mut offset = 0;
        let mut records = Vec::new();
        while offset < data.len() {
            let length = u64::from_le_bytes(data[offset..offset + 8].try_into().unwrap()) as usize;
            let body = &data[offset + 12..offset + 12 + length];
            let crc =
                u32::from_le_bytes(data[offset + 12 + length..offset + 16 + length].try_into().unwrap());
            assert_eq!(crc, masked(crc32c(body)));
            records.push(body.to_vec());
            offset += 16 + length;
        }
        assert_eq!(records.len(), 2);
        let has = |needle: &[u8]| records[1].windows(needle.len()).any(|window| window == needle);
        assert!(has(b"train/success_rate") && has(&0.5_f32.to_le_bytes()));
    }
}
