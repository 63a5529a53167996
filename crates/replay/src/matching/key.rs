//! Short digests of requests, by which recordings are found.

use sha2::{Digest, Sha256};

use super::normalise::{Body, Normalised};
use crate::{Headers, Request, Response, respond};

/// The first half of a SHA-256.
pub(crate) type Key = [u8; 16];

fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
    let mut hasher = Sha256::new();
    for part in parts {
        // With its length, so that no two lists of parts have the same bytes.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut key = [0; 16];
    key.copy_from_slice(&hasher.finalize()[..16]);
    key
}

/// What a recording is good for beside ordinary requests: a part of a body, or "not modified".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Complete,
    Range(String),
    NotModified,
}

impl Variant {
    /// Returns the variant of a recorded response.
    pub(crate) fn of_recording(request: &Request, response: Option<&Response>) -> Self {
        match response {
            Some(response) if response.status == 304 => Self::NotModified,
            Some(response) if response.status == 206 && !respond::is_complete_part(&response.headers) => {
                Self::Range(request.headers.text("range").unwrap_or_default().to_owned())
            }
            _ => Self::Complete,
        }
    }

    /// Returns the variants that can answer a request, best first.
    pub(crate) fn for_request(headers: &Headers) -> Vec<Self> {
        if let Some(range) = headers.text("range") {
            vec![Self::Range(range.to_owned()), Self::Complete]
        } else if headers.contains("if-none-match") || headers.contains("if-modified-since") {
            vec![Self::Complete, Self::NotModified]
        } else {
            vec![Self::Complete]
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Complete => b"",
            Self::Range(range) => range.as_bytes(),
            Self::NotModified => b"304",
        }
    }
}

pub(crate) fn exact(request: &Request, url: &str, variant: &Variant) -> Key {
    digest([b"exact", request.method.as_bytes(), url.as_bytes(), &request.body, variant.as_bytes()])
}

pub(crate) fn normalised(method: &str, normalised: &Normalised, variant: &Variant) -> Key {
    let mut parts: Vec<&[u8]> = vec![b"normalised", method.as_bytes(), variant.as_bytes()];
    parts.push(normalised.location.as_bytes());
    push_pairs(&mut parts, &normalised.query);
    match &normalised.body {
        Body::Empty => {}
        Body::Fields(fields) => {
            parts.push(b"fields");
            push_pairs(&mut parts, fields);
        }
        Body::Other(bytes) => parts.extend([b"bytes".as_slice(), bytes]),
    }
    digest(parts)
}

fn push_pairs<'a>(parts: &mut Vec<&'a [u8]>, pairs: &'a [(String, String)]) {
    parts.extend(pairs.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
}

/// The recordings among which the most similar is looked for.
pub(crate) fn place(method: &str, location: &str, variant: &Variant) -> Key {
    digest([b"place".as_slice(), method.as_bytes(), location.as_bytes(), variant.as_bytes()])
}
