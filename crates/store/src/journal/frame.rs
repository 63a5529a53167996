//! One record a line: eight hexadecimal digits of CRC-32, a space, JSON, a line feed. A person can read it, and a
//! line that was cut or altered cannot pass for a whole one.

use serde::Serialize;

const PREFIX: usize = 9;

pub(super) fn encode<T: Serialize>(record: &T) -> serde_json::Result<Vec<u8>> {
    let mut line = vec![b' '; PREFIX];
    serde_json::to_writer(&mut line, record)?;
    let checksum = format!("{:08x}", crc32fast::hash(&line[PREFIX..]));
    line[..PREFIX - 1].copy_from_slice(checksum.as_bytes());
    line.push(b'\n');
    Ok(line)
}

/// The JSON of a line with its line feed, or why it is not whole.
pub(super) fn decode(line: &[u8]) -> Result<&[u8], &'static str> {
    let body = line.strip_suffix(b"\n").ok_or("the line is cut off")?;
    if body.len() <= PREFIX || body[PREFIX - 1] != b' ' {
        return Err("the line has no checksum");
    }
    let (prefix, json) = body.split_at(PREFIX);
    let expected = std::str::from_utf8(&prefix[..PREFIX - 1])
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
    fn a_line_is_readable_and_comes_back() {
        let line = encode(&serde_json::json!({"a": "line\nfeed ☃"})).unwrap();
        let text = std::str::from_utf8(&line).unwrap();
        assert!(text.ends_with("{\"a\":\"line\\nfeed ☃\"}\n"), "{text}");
        assert_eq!(text.matches('\n').count(), 1);
        assert_eq!(decode(&line), Ok(&line[9..line.len() - 1]));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_noticed() {
        let line = encode(&serde_json::json!({"a": [1, 2, 3]})).unwrap();
        for length in 0..line.len() {
            assert!(decode(&line[..length]).is_err(), "cut at {length}");
        }
        for bit in 0..line.len() * 8 {
            let mut altered = line.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            // An upper-case checksum digit is the same checksum.
            let same_digits = altered[..8].eq_ignore_ascii_case(&line[..8]) && altered[8..] == line[8..];
            assert!(decode(&altered).is_err() || same_digits, "bit {bit}");
        }
    }
}
