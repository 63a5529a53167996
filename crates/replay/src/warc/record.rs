//! The headers of a record, and its bytes as a gzip member.

use std::{fmt::Write as _, io::Write as _};

use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;

const VERSION: &str = "WARC/1.1";

/// The named fields of a record. Names are compared without regard to case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordHeader(Vec<(String, String)>);

impl RecordHeader {
    /// Returns the headers that every record has.
    pub(crate) fn new(kind: &str, id: &str, date: Timestamp) -> Self {
        let mut header = Self::default();
        header.push("WARC-Type", kind);
        header.push("WARC-Record-ID", id);
        header.push("WARC-Date", warc_date(date));
        header
    }

    pub(crate) fn push(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_owned(), value.into()));
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn kind(&self) -> &str {
        self.get("WARC-Type").unwrap_or_default()
    }

    pub fn id(&self) -> &str {
        self.get("WARC-Record-ID").unwrap_or_default()
    }

    /// Returns the URL. Some programs write it in angle brackets.
    pub fn target(&self) -> Option<&str> {
        self.get("WARC-Target-URI").map(|url| url.trim_start_matches('<').trim_end_matches('>'))
    }

    pub fn date(&self) -> Option<Timestamp> {
        self.get("WARC-Date")?.parse().ok()
    }

    /// Parses everything up to the empty line. Names and values that are not UTF-8 are read with replacements.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let version = lines.next().unwrap_or_default();
        if !version.starts_with("WARC/1.") && !version.starts_with("WARC/0.1") {
            return Err(format!("it starts with {:?} instead of WARC/1.1", shorten(version)));
        }
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in lines.take_while(|line| !line.is_empty()) {
            if line.starts_with([' ', '\t']) {
                // A folded line continues the value of the one before it.
                let Some((_, value)) = fields.last_mut() else {
                    return Err("it starts with a folded line".into());
                };
                value.push(' ');
                value.push_str(line.trim());
                continue;
            }
            let (name, value) =
                line.split_once(':').ok_or_else(|| format!("the line {:?} has no colon", shorten(line)))?;
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(Self(fields))
    }

    pub(crate) fn content_length(&self) -> Result<u64, String> {
        let value = self.get("Content-Length").ok_or("it has no Content-Length")?;
        value.parse().map_err(|_| format!("its Content-Length is {value:?}, not a number"))
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Returns a new `WARC-Record-ID`.
pub(crate) fn record_id() -> String {
    format!("<urn:uuid:{}>", uuid::Uuid::new_v4())
}

/// WARC 1.1 allows fractions of seconds; milliseconds keep the order within a second.
pub(crate) fn warc_date(date: Timestamp) -> String {
    format!("{date:.3}")
}

/// Encodes a record as one gzip member.
pub(crate) fn encode(header: &RecordHeader, block: &[&[u8]]) -> std::io::Result<Vec<u8>> {
    let length: usize = block.iter().map(|part| part.len()).sum();
    let mut text = format!("{VERSION}\r\n");
    for (name, value) in &header.0 {
        // A line break in a value would start another field.
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        let _ = write!(text, "{name}: {value}\r\n");
    }
    let _ = write!(text, "Content-Length: {length}\r\n\r\n");
    let mut encoder = GzEncoder::new(Vec::with_capacity(length / 3 + 512), Compression::fast());
    encoder.write_all(text.as_bytes())?;
    for part in block {
        encoder.write_all(part)?;
    }
    encoder.write_all(b"\r\n\r\n")?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_lines_and_angle_brackets_are_understood() {
        let header = RecordHeader::parse(
            b"WARC/1.0\r\nWARC-Type: response\r\nX: a\r\n b\r\nWARC-Target-URI: <http://a/>\r\n",
        )
        .unwrap();
        assert_eq!(
            (header.kind(), header.get("x"), header.target()),
            ("response", Some("a b"), Some("http://a/"))
        );
    }

    #[test]
    fn other_text_is_refused() {
        assert!(RecordHeader::parse(b"HTTP/1.1 200 OK\r\n").unwrap_err().contains("HTTP/1.1 200"));
        assert!(RecordHeader::parse(b"WARC/1.1\r\nno colon\r\n").unwrap_err().contains("no colon"));
    }
}
