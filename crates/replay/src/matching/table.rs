//! The keys of all recordings of an archive.

use std::collections::HashMap;

use super::{
    MatchRules,
    key::{self, Key, Variant},
    normalise::{Normalised, normalise, parse_url},
};
use crate::scan::StoredExchange;

/// Recordings by their keys, each list in the order of recording.
#[derive(Debug, Default)]
pub(crate) struct Table {
    exact: HashMap<Key, Vec<u32>>,
    normalised: HashMap<Key, Vec<u32>>,
    places: HashMap<Key, Vec<u32>>,
    /// For each recording: its normalised key, and its parts if it can be scored.
    pub(super) keys: Vec<Option<Key>>,
    pub(super) parts: Vec<Option<Normalised>>,
}

impl Table {
    pub(crate) fn build(exchanges: &[StoredExchange], rules: &MatchRules) -> Self {
        let mut table = Self::default();
        for (index, stored) in exchanges.iter().enumerate() {
            let parts = table.add(index as u32, stored, rules);
            table.keys.push(parts.as_ref().map(|(key, _)| *key));
            table.parts.push(parts.map(|(_, parts)| parts));
        }
        table
    }

    fn add(&mut self, index: u32, stored: &StoredExchange, rules: &MatchRules) -> Option<(Key, Normalised)> {
        let url = parse_url(&stored.request.url)?;
        let request = &stored.request;
        let variant = Variant::of_recording(request, stored.response.as_ref());
        let parts = normalise(request, &url, rules);
        let normalised = key::normalised(&request.method, &parts, &variant);
        let place = key::place(&request.method, &parts.location, &variant);
        self.exact.entry(key::exact(request, url.as_str(), &variant)).or_default().push(index);
        self.normalised.entry(normalised).or_default().push(index);
        self.places.entry(place).or_default().push(index);
        Some((normalised, parts))
    }

    pub(super) fn exact(&self, key: &Key) -> &[u32] {
        self.exact.get(key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn normalised(&self, key: &Key) -> &[u32] {
        self.normalised.get(key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn place(&self, key: &Key) -> &[u32] {
        self.places.get(key).map_or(&[], Vec::as_slice)
    }
}
