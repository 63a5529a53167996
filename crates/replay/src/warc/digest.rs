//! Labelled digests: `sha256:HEX` as we write them, and `sha1` or `sha256` in hexadecimal, Base32 or Base64 as others do.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Computes a digest while bytes pass by.
pub(crate) enum Hasher {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Hasher {
    /// Returns a hasher for a label, or nothing if the algorithm is unknown.
    pub(crate) fn for_label(label: &str) -> Option<Self> {
        match label.split_once(':')?.0.to_ascii_lowercase().as_str() {
            "sha1" => Some(Self::Sha1(Sha1::new())),
            "sha256" | "sha-256" => Some(Self::Sha256(Sha256::new())),
            _ => None,
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// Returns the found digest as text if it differs from what the label says.
    pub(crate) fn mismatch(self, label: &str) -> Option<String> {
        let (name, bytes) = match self {
            Self::Sha1(hasher) => ("sha1", hasher.finalize().to_vec()),
            Self::Sha256(hasher) => ("sha256", hasher.finalize().to_vec()),
        };
        let value = label.split_once(':').map_or("", |(_, value)| value).trim();
        let is_same = value.eq_ignore_ascii_case(&to_hex(&bytes))
            || value.trim_end_matches('=').eq_ignore_ascii_case(&to_base32(&bytes))
            || value.trim_end_matches('=') == STANDARD.encode(&bytes).trim_end_matches('=');
        (!is_same).then(|| format!("{name}:{}", to_hex(&bytes)))
    }
}

pub(crate) fn sha256_label(bytes: &[u8]) -> String {
    format!("sha256:{}", to_hex(&Sha256::digest(bytes)))
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Base32 of RFC 4648, without padding.
fn to_base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let (mut text, mut buffer, mut bits) = (String::new(), 0_u32, 0);
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(buffer >> bits) as usize & 31]));
        }
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(buffer << (5 - bits)) as usize & 31]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differs(label: &str) -> bool {
        let mut hasher = Hasher::for_label(label).unwrap();
        hasher.update(b"abc");
        hasher.mismatch(label).is_some()
    }

    #[test]
    fn known_digests_are_accepted_in_every_encoding() {
        for label in [
            "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5",
            "sha1:a9993e364706816aba3e25717850c26c9cd0d89d",
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "sha256:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
        ] {
            assert!(!differs(label), "{label}");
        }
        assert!(differs("sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE6"));
        assert!(Hasher::for_label("blake9:00").is_none());
    }
}
