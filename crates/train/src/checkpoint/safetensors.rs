//! Checks a safetensors file: eight bytes with the length of a JSON header, the header, and the tensors that it describes,
//! without gaps and up to the end of the file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Returns the number of tensors, or what is wrong.
pub(super) fn check(path: &Path) -> Result<usize, String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut size = [0; 8];
    file.read_exact(&mut size).map_err(|_| format!("it has only {length} bytes"))?;
    let header_length = u64::from_le_bytes(size);
    if header_length > MAX_HEADER_BYTES || header_length + 8 > length {
        return Err(format!("its header should have {header_length} bytes, but the file has {length}"));
    }
    let mut header = vec![0; header_length as usize];
    file.read_exact(&mut header).map_err(|error| error.to_string())?;
    let header: Value =
        serde_json::from_slice(&header).map_err(|error| format!("its header is not JSON: {error}"))?;
    check_tensors(&header, length - 8 - header_length)
}

fn check_tensors(header: &Value, data_length: u64) -> Result<usize, String> {
    let Some(entries) = header.as_object() else { return Err("its header is not an object".to_owned()) };
    let mut ranges = Vec::new();
    for (name, tensor) in entries.iter().filter(|(name, _)| *name != "__metadata__") {
        let offset = |index: usize| tensor.get("data_offsets")?.get(index)?.as_u64();
        match (offset(0), offset(1)) {
            (Some(start), Some(end)) if start <= end => ranges.push((start, end)),
            _ => return Err(format!("its tensor {name:?} has no valid data_offsets")),
        }
    }
    ranges.sort_unstable();
    let mut position = 0;
    for (start, end) in &ranges {
        if *start != position {
            return Err(format!("there is a gap between its tensors at byte {position}"));
        }
        position = *end;
    }
    if position != data_length {
        return Err(format!("its tensors should have {position} bytes, but there are {data_length}"));
    }
    if position == 0 { Err("it has no tensors".to_owned()) } else { Ok(ranges.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn complete_file_is_accepted_and_damage_is_named() {
        let two = r#"{"__metadata__":{"format":"pt"},"b":{"data_offsets":[4,8]},"a":{"data_offsets":[0,4]}}"#;
        assert_eq!(check(file(two, &[0; 8]).path()), Ok(2));
        for (header, data, reason) in [
            (two, 7, "its tensors should have 8 bytes, but there are 7"),
            (two, 9, "its tensors should have 8 bytes, but there are 9"),
            ("{}", 0, "it has no tensors"),
            (r#"{"a":{"data_offsets":[4,8]}}"#, 8, "gap"),
            (r#"{"a":{}}"#, 0, "data_offsets"),
            ("nope", 0, "not JSON"),
        ] {
            let error = check(file(header, &vec![0; data]).path()).unwrap_err();
            assert!(error.contains(reason), "{header} {data}: {error}");
        }
        let short = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(short.path(), b"abc").unwrap();
        assert_eq!(check(short.path()), Err("it has only 3 bytes".to_owned()));
        std::fs::write(short.path(), [0xff; 16]).unwrap();
        assert!(check(short.path()).unwrap_err().contains("header should have"));
    }
}
