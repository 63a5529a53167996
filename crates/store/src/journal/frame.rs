//! Encodes one record per line: eight hexadecimal digits of CRC-32, a space, JSON and a line feed. Lines are readable
//! as text, and truncated or modified lines are detected.

use serde::Serialize;

/// Length of the checksum and the space.
const PREFIX_LENGTH: usize = 9;

pub(super) fn encode<T: Serialize>(record: &T) -> serde_json::Result<Vec<u8>> {
    let mut line = vec![b' '; PREFIX_LENGTH];
    serde_json::to_writer(&mut line, record)?;
    let checksum = format!("{:08x}", crc32fast::hash(&line[PREFIX_LENGTH..]));
    line[..PREFIX_LENGTH - 1].copy_from_slice(checksum.as_bytes());
    line.push(b'\n');
    Ok(line)
}

/// Returns the JSON of a line (given with its line feed), or the reason why the line is corrupt.
pub(super) fn decode(line: &[u8]) -> Result<&[u8], &'static str> {
    let body = line.strip_suffix(b"\n").ok_or("the line is truncated")?;
    if body.len() <= PREFIX_LENGTH || body[PREFIX_LENGTH - 1] != b' ' {
        return Err("the line has no checksum");
    }
    let (prefix, json) = body.split_at(PREFIX_LENGTH);
    let expected = std::str::from_utf8(&prefix[..PREFIX_LENGTH - 1])
        .ok()
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or("the line has no checksum")?;
    if crc32fast::hash(json) == expected { Ok(json) } else { Err("the checksum does not match") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_line_is_readable_and_decodes() {
        let line = encode(&serde_json::json!({"a": "line\nfeed ☃"})).unwrap();
        let text = std::str::from_utf8(&line).unwrap();
        assert!(text.ends_with("{\"a\":\"line\\nfeed ☃\"}\n"), "{text}");
        assert_eq!(text.matches('\n').count(), 1);
        assert_eq!(decode(&line), Ok(&line[9..line.len() - 1]));
    }

    #[test]
    fn truncation_and_flipped_bits_are_detected() {
        let line = encode(&serde_json::json!({"a": [1, 2, 3]})).unwrap();
        for length in 0..line.len() {
            assert!(decode(&line[..length]).is_err(), "truncated to {length}");
        }
        for bit in 0..line.len() * 8 {
            let mut altered = line.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            // Flipping the case of a hexadecimal digit does not change the checksum.
            let is_same_checksum = altered[..8].eq_ignore_ascii_case(&line[..8]) && altered[8..] == line[8..];
            assert!(decode(&altered).is_err() || is_same_checksum, "bit {bit}");
        }
    }
}
