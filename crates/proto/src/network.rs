//! Recording the network traffic of a session and replaying it: the option of a lease, and the report about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text::cut;

/// The session option `network`: where the requests of the pages go. Without it they go to the network and nothing is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkOptions {
    /// The archive into which the traffic is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The archive that answers the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// What becomes of requests that the archive cannot answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_miss: Option<OnMiss>,
    /// A name for the session: it is recorded with every request, and a replay prefers recordings of its own session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The seed of the random numbers of pages during a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
    /// The clock of pages during a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// Keeps cookies, credentials and password fields in the recording.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_secrets: bool,
    /// Headers, query keys and fields of bodies whose values are not recorded either.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redact_headers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redact_query: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redact_fields: Vec<String>,
    /// Query keys and fields whose values are ignored when requests are matched with recordings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore_keys: Vec<String>,
    /// False: only exact and normalised matches count; otherwise similar recordings answer, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scored: Option<bool>,
    /// Hosts (`name` or `*.name`) whose TLS connections are passed on unread. Their traffic is recorded by the browser.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tunnel_hosts: Vec<String>,
}

/// The clock of the pages of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// It starts with the recording and advances only with commands; pages are deterministic.
    #[default]
    Virtual,
    /// Pages run as they do without a replay, for example for CDP clients that wait with timers.
    Real,
}

/// What becomes of a request that the archive cannot answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnMiss {
    /// It fails, and so does every following command of the lease, with `replay_miss`.
    #[default]
    #[serde(rename = "fail")]
    Fail,
    /// It is answered with 404.
    #[serde(rename = "404")]
    NotFound,
    /// It is sent to the network, and what comes back is recorded.
    #[serde(rename = "live")]
    Live,
}

const MAX_NAME: usize = 500;
const MAX_LIST: usize = 200;

impl NetworkOptions {
    /// Parses the options. The error names the field.
    pub fn from_json(fields: &Map<String, Value>) -> Result<Self, String> {
        let mut fields = fields.clone();
        // A number is an obvious way to write it.
        if let Some(on_miss) = fields.get_mut("on_miss").filter(|value| **value == 404) {
            *on_miss = "404".into();
        }
        for (name, value) in &fields {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            serde_json::from_value::<Self>(alone.into()).map_err(|error| format!("{name}: {error}"))?;
        }
        let options: Self = serde_json::from_value(fields.into()).map_err(|error| error.to_string())?;
        options.check().map(|()| options)
    }

    /// Fails if fields are missing or contradict each other.
    pub fn check(&self) -> Result<(), String> {
        match (&self.record, &self.replay, self.on_miss) {
            (None, None, _) => return Err("it needs record or replay, the name of an archive".into()),
            (Some(_), Some(_), Some(OnMiss::Live)) | (None, Some(_), _) | (Some(_), None, None) => {}
            (Some(_), None, Some(_)) => return Err("on_miss needs replay".into()),
            (Some(_), Some(_), _) => {
                return Err("record and replay together need on_miss: \"live\"; leave out one of them".into());
            }
        }
        if self.replay.is_some() && self.is_redacted() && self.on_miss != Some(OnMiss::Live) {
            return Err(
                "keep_secrets and redact_… belong to record; a replay uses what the archive says".into()
            );
        }
        if self.replay.is_none() && !self.ignore_keys.is_empty() {
            return Err("ignore_keys needs replay".into());
        }
        if self.replay.is_none() && self.clock.is_some() {
            return Err("clock needs replay".into());
        }
        if self.replay.is_none() && self.scored.is_some() {
            return Err("scored needs replay".into());
        }
        let names = [&self.record, &self.replay, &self.session];
        for name in names.into_iter().flatten() {
            if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
                return Err(format!("{:?} is not a name of 1 to {MAX_NAME} characters", cut(name)));
            }
        }
        let lists = [
            &self.redact_headers,
            &self.redact_query,
            &self.redact_fields,
            &self.ignore_keys,
            &self.tunnel_hosts,
        ];
        for list in lists {
            if list.len() > MAX_LIST || list.iter().any(|entry| entry.is_empty() || entry.len() > MAX_NAME) {
                return Err(format!("a list has at most {MAX_LIST} entries of 1 to {MAX_NAME} characters"));
            }
        }
        Ok(())
    }

    fn is_redacted(&self) -> bool {
        self.keep_secrets
            || !(self.redact_headers.is_empty()
                && self.redact_query.is_empty()
                && self.redact_fields.is_empty())
    }
}

/// How many requests the archive answered, by the kind of match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCounts {
    pub exact: u64,
    pub normalised: u64,
    pub scored: u64,
    pub missed: u64,
}

impl MatchCounts {
    pub const fn total(&self) -> u64 {
        self.exact + self.normalised + self.scored + self.missed
    }

    pub const fn add(&mut self, other: &Self) {
        self.exact += other.exact;
        self.normalised += other.normalised;
        self.scored += other.scored;
        self.missed += other.missed;
    }

    pub const fn count(&mut self, kind: MatchName) {
        match kind {
            MatchName::Exact => self.exact += 1,
            MatchName::Normalised => self.normalised += 1,
            MatchName::Scored => self.scored += 1,
            MatchName::Missed => self.missed += 1,
        }
    }
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchName {
    Exact,
    Normalised,
    Scored,
    Missed,
}

/// A request of a replay and how it was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayedRequest {
    pub method: String,
    pub url: String,
    #[serde(rename = "match")]
    pub kind: MatchName,
    /// How similar the request is to the recording that answered it; for a miss, to the most similar one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// What `GET /network` reports about a lease.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkReport {
    /// The archive that is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The archive that is replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// Requests that were recorded.
    #[serde(default)]
    pub recorded: u64,
    /// Requests that could not be recorded, for example because the disk is full.
    #[serde(default)]
    pub unrecorded: u64,
    /// Hosts whose connections were passed on unread.
    #[serde(default)]
    pub tunnelled: Vec<String>,
    /// All requests of the replay.
    #[serde(default)]
    pub matches: MatchCounts,
    /// The same for each origin.
    #[serde(default)]
    pub sites: BTreeMap<String, MatchCounts>,
    /// The requests of the replay in their order, at most [`Self::MAX_REQUESTS`]; misses come before others that do not fit.
    #[serde(default)]
    pub requests: Vec<ReplayedRequest>,
}

impl NetworkReport {
    pub const MAX_REQUESTS: usize = 2000;
}

/// What a trajectory keeps of a [`NetworkReport`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkSummary {
    /// The requests of the replay.
    #[serde(default)]
    pub matches: MatchCounts,
    /// The same for each origin.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sites: BTreeMap<String, MatchCounts>,
    /// The first requests that the archive could not answer, at most [`Self::MAX_MISSES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<MissedRequest>,
    /// Requests that were recorded.
    #[serde(default)]
    pub recorded: u64,
}

/// A request that the archive could not answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissedRequest {
    pub method: String,
    pub url: String,
    /// How similar the most similar recording is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

impl NetworkSummary {
    pub const MAX_MISSES: usize = 20;

    pub fn of(report: NetworkReport) -> Self {
        let NetworkReport { matches, sites, requests, recorded, .. } = report;
        let misses = requests
            .into_iter()
            .filter(|request| request.kind == MatchName::Missed)
            .take(Self::MAX_MISSES)
            .map(|ReplayedRequest { method, url, score, .. }| MissedRequest { method, url, score })
            .collect();
        Self { matches, sites, misses, recorded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn summary_keeps_the_first_misses() {
        let request = |number: usize| ReplayedRequest {
            method: "GET".into(),
            url: format!("https://shop.test/{number}"),
            kind: if number.is_multiple_of(2) { MatchName::Missed } else { MatchName::Scored },
            score: Some(0.5),
        };
        let matches = MatchCounts { missed: 30, scored: 30, ..MatchCounts::default() };
        let requests = (0..60).map(request).collect();
        let summary = NetworkSummary::of(NetworkReport { matches, requests, ..NetworkReport::default() });
        assert_eq!((summary.matches, summary.misses.len()), (matches, NetworkSummary::MAX_MISSES));
        assert_eq!(summary.misses[1].url, "https://shop.test/2");
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["misses"][0], json!({"method": "GET", "url": "https://shop.test/0", "score": 0.5}));
    }

    fn checked(value: &Value) -> Result<(), String> {
        NetworkOptions::from_json(value.as_object().unwrap()).map(drop)
    }

    #[test]
    fn contradictions_are_refused() {
        for (options, expected) in [
            (json!({}), "it needs record or replay"),
            (json!({"record": "a", "on_miss": "404"}), "on_miss needs replay"),
            (json!({"record": "a", "replay": "b"}), "need on_miss: \"live\""),
            (json!({"replay": "b", "keep_secrets": true}), "belong to record"),
            (json!({"record": "a", "ignore_keys": ["x"]}), "ignore_keys needs replay"),
            (json!({"record": "a", "clock": "real"}), "clock needs replay"),
            (json!({"record": ""}), "is not a name"),
            (json!({"replay": "a", "on_miss": "ignore"}), "on_miss: unknown variant `ignore`"),
            (json!({"replay": "a", "seed": -1}), "seed: invalid value: integer `-1`"),
            (json!({"record": "a", "redact_fields": "tok"}), "redact_fields: invalid type"),
            (json!({"record": "a", "redactfields": []}), "redactfields: unknown field"),
            (json!({"record": "a", "scored": false}), "scored needs replay"),
            (json!({"replay": "a", "redact_query": ["\u{e9}"]}), "belong to record"),
            (json!({"replay": "a", "tunnel_hosts": [""]}), "a list has at most"),
        ] {
            let error = checked(&options).unwrap_err();
            assert!(error.contains(expected), "{options}: {error}");
        }
        for accepted in [
            json!({"record": "shop", "redact_fields": ["iban"]}),
            json!({"replay": "shop", "on_miss": 404, "scored": false}),
            json!({"replay": "shop", "on_miss": "live", "record": "shop-today", "keep_secrets": true}),
        ] {
            assert_eq!(checked(&accepted), Ok(()), "{accepted}");
        }
    }
}
