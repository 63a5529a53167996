//! Reads the lines of a file one at a time, with their numbers and offsets. Blank lines, CRLF and a byte order mark are
//! skipped. A line beyond the limit is reported without being kept in memory.

use std::io::{self, BufRead};

/// Upper bound of a line's length, so that a file without line breaks cannot fill the memory.
const MAX_LINE_BYTES: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the line is longer than {MAX_LINE_BYTES} bytes")]
pub(super) struct TooLong;

pub(super) struct Line<'a> {
    pub(super) number: u32,
    /// The offset of `text` in the file.
    pub(super) offset: u64,
    pub(super) text: Result<&'a [u8], TooLong>,
}

pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u32,
    position: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), number: 0, position: 0 }
    }

    /// Returns the next line that is not blank.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let start = self.position;
            let Some(fits) = self.fill()? else { return Ok(None) };
            self.number += 1;
            if !fits {
                return Ok(Some(Line { number: self.number, offset: start, text: Err(TooLong) }));
            }
            let bom: &[u8] = b"\xef\xbb\xbf";
            let after_bom = if start == 0 && self.buffer.starts_with(bom) { bom.len() } else { 0 };
            let blank_before =
                self.buffer[after_bom..].iter().take_while(|b| b.is_ascii_whitespace()).count();
            let begin = after_bom + blank_before;
            if begin == self.buffer.len() {
                continue;
            }
            let text = self.buffer[begin..].trim_ascii_end();
            return Ok(Some(Line { number: self.number, offset: start + begin as u64, text: Ok(text) }));
        }
    }

    /// Reads one line into the buffer. Returns `Some(false)` if it was too long and was skipped, `None` at the end.
    fn fill(&mut self) -> io::Result<Option<bool>> {
        self.buffer.clear();
        let start = self.position;
        let mut fits = true;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok((self.position > start).then_some(fits));
            }
            let end = memchr::memchr(b'\n', chunk);
            let used = end.map_or(chunk.len(), |end| end + 1);
            fits &= self.buffer.len() + used <= MAX_LINE_BYTES;
            if fits {
                self.buffer.extend_from_slice(&chunk[..used]);
            }
            self.input.consume(used);
            self.position += used as u64;
            if end.is_some() {
                return Ok(Some(fits));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> Vec<(u32, u64, Option<String>)> {
        let mut lines = Lines::new(io::BufReader::with_capacity(7, input));
        let mut got = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            let text = line.text.ok().map(|text| String::from_utf8(text.to_vec()).unwrap());
            got.push((line.number, line.offset, text));
        }
        got
    }

    #[test]
    fn byte_order_mark_and_blank_lines_are_skipped() {
        let input = b"\xef\xbb\xbf{a}\r\n\n   \r\n  {b} \n{c}";
        let text = |t: &str| Some(t.to_owned());
        assert_eq!(all(input), [(1, 3, text("{a}")), (4, 16, text("{b}")), (5, 21, text("{c}"))]);
    }

    #[test]
    fn overlong_line_is_reported_and_skipped() {
        let mut input = vec![b'x'; MAX_LINE_BYTES + 10];
        input.extend_from_slice(b"\n{b}\n");
        let got = all(&input);
        assert_eq!(got[0].2, None);
        assert_eq!(got[1].2.as_deref(), Some("{b}"));
    }
}
