//! Content encodings: decodes gzip, deflate, Brotli and Zstandard, with a bound on the size.

use std::{
    borrow::Cow,
    io::{self, Read},
};

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::Headers;

/// The largest decoded body. A larger one is treated as not decodable.
pub const MAX_DECODED: u64 = 256 << 20;

/// Returns the body without its content encoding, or nothing if that is unknown, broken or too large.
pub fn decode<'a>(headers: &Headers, body: &'a Bytes) -> Option<Cow<'a, [u8]>> {
    let names = headers.text("content-encoding").unwrap_or_default().to_ascii_lowercase();
    let mut decoded = Cow::Borrowed(body.as_ref());
    // The last encoding was applied last.
    for name in names.split(',').map(str::trim).rev().filter(|name| !name.is_empty() && *name != "identity") {
        decoded = Cow::Owned(decode_one(name, &decoded).ok()?);
    }
    Some(decoded)
}

fn decode_one(name: &str, body: &[u8]) -> io::Result<Vec<u8>> {
    match name {
        "gzip" | "x-gzip" => read_bounded(MultiGzDecoder::new(body)),
        // Some servers send deflate without the zlib header that the standard asks for.
        "deflate" => {
            read_bounded(ZlibDecoder::new(body)).or_else(|_| read_bounded(DeflateDecoder::new(body)))
        }
        "br" => read_bounded(brotli_decompressor::Decompressor::new(body, 4096)),
        "zstd" => read_bounded(zstd::stream::read::Decoder::new(body)?),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn read_bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut decoded = Vec::new();
    reader.take(MAX_DECODED + 1).read_to_end(&mut decoded)?;
    if decoded.len() as u64 > MAX_DECODED { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(decoded) }
}

/// Whether a client accepts the content encoding of a response, by its `Accept-Encoding`.
pub fn is_accepted(response: &Headers, accept_encoding: Option<&str>) -> bool {
    let encodings = response.text("content-encoding").unwrap_or_default().to_ascii_lowercase();
    let accepted = accept_encoding.unwrap_or_default().to_ascii_lowercase();
    let accepts = |wanted: &str| {
        accepted.split(',').any(|item| {
            let mut parts = item.split(';').map(str::trim);
            let is_named = parts.next().is_some_and(|name| name == wanted || name == "*");
            is_named && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        })
    };
    encodings.split(',').map(str::trim).all(|name| name.is_empty() || name == "identity" || accepts(name))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn with_encoding(name: &str) -> Headers {
        [("Content-Encoding", name)].into_iter().collect()
    }

    #[test]
    fn every_encoding_is_decoded() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"hello").unwrap();
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        deflate.write_all(b"hello").unwrap();
        // "hello" as an uncompressed meta-block of Brotli.
        let brotli = vec![0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];
        for (name, bytes) in [
            ("gzip", gzip.finish().unwrap()),
            ("deflate", deflate.finish().unwrap()),
            ("br", brotli),
            ("zstd", zstd::encode_all(b"hello".as_slice(), 1).unwrap()),
            ("", b"hello".to_vec()),
        ] {
            let body = Bytes::from(bytes);
            assert_eq!(decode(&with_encoding(name), &body).as_deref(), Some(b"hello".as_slice()), "{name}");
        }
    }

    #[test]
    fn broken_or_unknown_encoding_is_not_decoded() {
        let body = Bytes::from_static(b"plain");
        assert!(decode(&with_encoding("gzip"), &body).is_none());
        assert!(decode(&with_encoding("lzma"), &body).is_none());
    }

    #[test]
    fn accept_encoding_is_honoured() {
        let brotli = with_encoding("br");
        assert!(is_accepted(&brotli, Some("gzip, deflate, br;q=0.9")));
        assert!(!is_accepted(&brotli, Some("gzip, br;q=0")));
        assert!(!is_accepted(&brotli, None));
        assert!(is_accepted(&Headers::new(), None));
    }
}
