//! One session's way through an archive: which of several recordings of a request comes next.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use super::{
    MatchKind,
    key::{self, Key, Variant},
    normalise::{Normalised, normalise, parse_url},
    score::score,
    sessions::Preference,
};
use crate::{
    Archive, ArchiveError, Request, Response,
    scan::{Payload, StoredExchange},
};

/// Looks up requests in a shared archive. It holds a few bytes for each request that was recorded more than once and
/// has been asked for.
#[derive(Clone, Debug)]
pub struct Cursor {
    archive: Arc<Archive>,
    preference: Option<Preference>,
    /// Lists of recordings → how many of them were given.
    positions: HashMap<Key, u32>,
}

/// The result of a lookup. A miss is a result, not an error.
#[derive(Clone, Debug)]
pub enum Answer {
    Found(Found),
    Miss(Miss),
}

/// A recording that answers a request.
#[derive(Clone, Debug)]
pub struct Found {
    archive: Arc<Archive>,
    index: usize,
    pub kind: MatchKind,
}

/// Nothing answers the request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Miss {
    /// Recordings of the same method, host and path, none of which is similar enough.
    pub candidates: usize,
    /// The score of the best of them.
    pub best_score: Option<f64>,
}

impl Found {
    pub fn stored(&self) -> &StoredExchange {
        &self.archive.exchanges()[self.index]
    }

    /// Returns the recorded response with its body, or the network error that was recorded instead.
    pub fn response(&self) -> Result<Result<Response, String>, ArchiveError> {
        let stored = self.stored();
        match (&stored.payload, &stored.response) {
            (Payload::Failed(error), _) => Ok(Err(error.clone())),
            (_, Some(response)) => {
                Ok(Ok(Response { body: self.archive.body(self.index)?, ..response.clone() }))
            }
            (_, None) => Ok(Ok(Response::default())),
        }
    }
}

impl Cursor {
    pub fn new(archive: Arc<Archive>) -> Self {
        Self { archive, preference: None, positions: HashMap::new() }
    }

    /// Prefers the recordings of a session, then those of another attempt at its task (`TASK#ATTEMPT`).
    pub fn for_session(archive: Arc<Archive>, session: &str) -> Self {
        let preference = Some(archive.sessions().preference(session));
        Self { archive, preference, positions: HashMap::new() }
    }

    /// Finds the next recording for a request. Several recordings of one request are given in order, and the last is
    /// repeated.
    pub fn find(&mut self, request: &Request) -> Answer {
        let archive = Arc::clone(&self.archive);
        let redacted;
        let request = if archive.redaction().is_none() {
            request
        } else {
            let mut copy = request.clone();
            archive.redaction().request(&mut copy);
            redacted = copy;
            &redacted
        };
        let Some(url) = parse_url(&request.url) else { return Answer::Miss(Miss::default()) };
        let variants = Variant::for_request(&request.headers);
        for variant in &variants {
            let key = key::exact(request, url.as_str(), variant);
            if let Some(index) = self.take(key, archive.table().exact(&key)) {
                self.skip_to(index);
                return self.found(index, MatchKind::Exact);
            }
        }
        let parts = normalise(request, &url, archive.rules());
        for variant in &variants {
            let key = key::normalised(&request.method, &parts, variant);
            if let Some(index) = self.take(key, archive.table().normalised(&key)) {
                return self.found(index, MatchKind::Normalised);
            }
        }
        self.find_similar(request, &parts, &variants)
    }

    fn find_similar(&mut self, request: &Request, parts: &Normalised, variants: &[Variant]) -> Answer {
        let archive = Arc::clone(&self.archive);
        let mut miss = Miss::default();
        for variant in variants {
            let candidates = archive.table().place(&key::place(&request.method, &parts.location, variant));
            miss.candidates += candidates.len();
            let score_of =
                |index: u32| archive.table().parts[index as usize].as_ref().map(|other| score(parts, other));
            let scores: Vec<f64> = candidates.iter().map(|index| score_of(*index).unwrap_or(0.0)).collect();
            let Some(best) = scores.iter().copied().reduce(f64::max) else { continue };
            if best >= archive.rules().threshold {
                // Recordings of one request have one score: they are given in order as well.
                let first = candidates
                    .iter()
                    .zip(&scores)
                    .find(|(_, score)| **score >= best)
                    .map(|(index, _)| *index);
                let key = first.and_then(|index| archive.table().keys[index as usize]);
                let taken = key.and_then(|key| self.take(key, archive.table().normalised(&key)));
                if let Some(index) = taken {
                    return self.found(index, MatchKind::Scored(best));
                }
            }
            miss.best_score = Some(miss.best_score.map_or(best, |score: f64| score.max(best)));
        }
        Answer::Miss(miss)
    }

    fn found(&self, index: u32, kind: MatchKind) -> Answer {
        Answer::Found(Found { archive: Arc::clone(&self.archive), index: index as usize, kind })
    }

    /// Takes the next of several recordings. A single one needs no position.
    fn take(&mut self, key: Key, recordings: &[u32]) -> Option<u32> {
        match recordings {
            [] => None,
            [only] => Some(*only),
            several => {
                let several = self.preferred(several);
                let position = self.positions.entry(key).or_default();
                let index = several[(*position as usize).min(several.len() - 1)];
                *position = (*position + 1).min(several.len() as u32);
                Some(index)
            }
        }
    }

    /// Of several recordings, those that the session prefers.
    fn preferred<'a>(&self, recordings: &'a [u32]) -> Cow<'a, [u32]> {
        match &self.preference {
            Some(preference) => self.archive.sessions().nearest(preference, recordings).into(),
            None => recordings.into(),
        }
    }

    /// After an exact match, normalised matches continue behind it instead of going back in time.
    fn skip_to(&mut self, index: u32) {
        let Some(key) = self.archive.table().keys[index as usize] else { return };
        let archive = Arc::clone(&self.archive);
        let recordings = archive.table().normalised(&key);
        if recordings.len() > 1 {
            let recordings = self.preferred(recordings);
            let next = recordings.partition_point(|other| *other <= index) as u32;
            let position = self.positions.entry(key).or_default();
            *position = next.max(*position);
        }
    }
}
