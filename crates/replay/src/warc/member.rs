//! Reads records one after the other from a gzipped or plain WARC file and knows the offset of each in the file.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

/// Counts the bytes that were taken from a reader.
pub(crate) struct Counting<R> {
    pub(crate) inner: R,
    pub(crate) position: u64,
}

impl<R: BufRead> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counting<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.position += amount as u64;
        self.inner.consume(amount);
    }
}

/// The decompressed bytes of one record, or the rest of a plain file.
pub(crate) enum Member<'a, R: BufRead> {
    Gzip(Box<BufReader<GzDecoder<&'a mut Counting<R>>>>),
    Plain(&'a mut Counting<R>),
}

impl<R: BufRead> Read for Member<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Plain(source) => source.read(buffer),
        }
    }
}

impl<'a, R: BufRead> Member<'a, R> {
    pub(crate) fn gzip(source: &'a mut Counting<R>) -> Self {
        Self::Gzip(Box::new(BufReader::with_capacity(8 << 10, GzDecoder::new(source))))
    }

    /// Reads up to and including the empty line that ends a set of headers, but at most `limit` bytes. Returns nothing
    /// if the source ends before the first byte.
    pub(crate) fn read_header(&mut self, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let mut header = Vec::new();
        let mut byte = [0];
        loop {
            if self.read(&mut byte)? == 0 {
                return if header.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
            header.push(byte[0]);
            if byte[0] == b'\n' && (header.ends_with(b"\r\n\r\n") || header.ends_with(b"\n\n")) {
                return Ok(Some(header));
            }
            if header.len() >= limit {
                let message = format!("its headers are longer than {limit} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
    }

    /// Consumes the end of a record. A gzip member must hold nothing but the two line breaks, and its checksum must be
    /// right; in a plain file the line breaks are optional.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(decoder) => {
                let mut rest = Vec::new();
                decoder.by_ref().take(5).read_to_end(&mut rest)?;
                if rest.len() > 4 || rest.iter().any(|byte| !matches!(byte, b'\r' | b'\n')) {
                    let message = "there is more data than the Content-Length says";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
                Ok(())
            }
            Self::Plain(source) => skip_line_breaks(source),
        }
    }
}

pub(crate) fn skip_line_breaks<R: BufRead>(source: &mut Counting<R>) -> io::Result<()> {
    loop {
        let buffer = source.fill_buf()?;
        let count = buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let is_end = count == 0 || count < buffer.len();
        source.consume(count);
        if is_end {
            return Ok(());
        }
    }
}
