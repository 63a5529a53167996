//! Lines of a file with their numbers and places, one at a time. Blank lines, CRLF and a byte order mark are passed over;
//! a line beyond the limit is reported without being held in memory.

use std::io::{self, BufRead};

/// No task is this long; a file without line breaks must not fill the memory.
const MAX_LINE: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("longer than {MAX_LINE} bytes")]
pub(super) struct TooLong;

pub(super) struct Line<'a> {
    pub(super) number: u32,
    /// Where `text` starts in the file.
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

    /// The next line with something on it.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let start = self.position;
            let Some(whole) = self.fill()? else { return Ok(None) };
            self.number += 1;
            if !whole {
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

    /// Reads one line into the buffer. `Some(false)`: it was too long and has been passed over.
    fn fill(&mut self) -> io::Result<Option<bool>> {
        self.buffer.clear();
        let start = self.position;
        let mut fits = true;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(problem) if problem.kind() == io::ErrorKind::Interrupted => continue,
                Err(problem) => return Err(problem),
            };
            if chunk.is_empty() {
                return Ok((self.position > start).then_some(fits));
            }
            let end = memchr::memchr(b'\n', chunk);
            let used = end.map_or(chunk.len(), |at| at + 1);
            fits &= self.buffer.len() + used <= MAX_LINE;
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
    fn marks_blank_lines_and_both_line_ends_are_passed_over() {
        let input = b"\xef\xbb\xbf{a}\r\n\n   \r\n  {b} \n{c}";
        let text = |t: &str| Some(t.to_owned());
        assert_eq!(all(input), [(1, 3, text("{a}")), (4, 16, text("{b}")), (5, 21, text("{c}"))]);
    }

    #[test]
    fn a_line_without_end_is_reported_and_the_next_one_read() {
        let mut input = vec![b'x'; MAX_LINE + 10];
        input.extend_from_slice(b"\n{b}\n");
        let got = all(&input);
        assert_eq!(got[0].2, None);
        assert_eq!(got[1].2.as_deref(), Some("{b}"));
    }
}
