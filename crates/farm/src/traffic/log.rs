//! What became of the requests of a lease: counts, misses and the first thousands of requests, for the report.

use std::sync::{Mutex, MutexGuard, PoisonError};

use proto::network::{MatchName, NetworkOptions, NetworkReport, ReplayedRequest};
use replay::{Answer, MatchKind, Request};
use url::Url;

const MAX_URL: usize = 2000;
const MAX_SITES: usize = 500;

pub(super) struct Log(Mutex<NetworkReport>);

impl Log {
    pub(super) fn new(options: &NetworkOptions) -> Self {
        let (record, replay) = (options.record.clone(), options.replay.clone());
        Self(Mutex::new(NetworkReport { record, replay, ..NetworkReport::default() }))
    }

    fn state(&self) -> MutexGuard<'_, NetworkReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn report(&self) -> NetworkReport {
        self.state().clone()
    }

    pub(super) fn recorded(&self, is_recorded: bool) {
        let mut state = self.state();
        let counter = if is_recorded { &mut state.recorded } else { &mut state.unrecorded };
        *counter += 1;
    }

    pub(super) fn tunnelled(&self, host: &str) {
        let mut state = self.state();
        if state.tunnelled.len() < MAX_SITES && !state.tunnelled.iter().any(|known| known == host) {
            state.tunnelled.push(host.to_owned());
        }
    }

    /// Counts how a request was answered.
    pub(super) fn replayed(&self, request: &Request, answer: &Answer) {
        let (kind, score) = match answer {
            Answer::Found(found) => match found.kind {
                MatchKind::Exact => (MatchName::Exact, None),
                MatchKind::Normalised => (MatchName::Normalised, None),
                MatchKind::Scored(score) => (MatchName::Scored, Some(score)),
            },
            Answer::Miss(miss) => (MatchName::Missed, miss.best_score),
        };
        let url: String = request.url.chars().take(MAX_URL).collect();
        let site =
            Url::parse(&request.url).map_or_else(|_| url.clone(), |url| url.origin().ascii_serialization());
        let mut state = self.state();
        state.matches.count(kind);
        if state.sites.contains_key(&site) || state.sites.len() < MAX_SITES {
            state.sites.entry(site).or_default().count(kind);
        }
        if state.requests.len() >= NetworkReport::MAX_REQUESTS {
            let replaced = state.requests.iter().rposition(|request| request.kind != MatchName::Missed);
            match replaced.filter(|_| kind == MatchName::Missed) {
                Some(position) => state.requests.remove(position),
                None => return,
            };
        }
        state.requests.push(ReplayedRequest { method: request.method.clone(), url, kind, score });
    }

    /// Describes the first request that the archive could not answer.
    pub(super) fn first_miss(&self) -> Option<String> {
        let state = self.state();
        if state.matches.missed == 0 {
            return None;
        }
        let missed = state.requests.iter().find(|request| request.kind == MatchName::Missed)?;
        let archive = state.replay.as_deref().unwrap_or_default();
        let similar = match missed.score {
            Some(score) => format!("; the most similar recording has a score of {score:.2}"),
            None => String::new(),
        };
        let more = match state.matches.missed {
            1 => String::new(),
            missed => format!(" ({missed} requests missed in all)"),
        };
        Some(format!(
            "the archive {archive:?} has no answer to {} {}{similar}{more}",
            missed.method, missed.url
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use replay::Miss;

    #[test]
    fn misses_are_kept_when_the_list_is_full() {
        let log = Log::new(&NetworkOptions { replay: Some("shop".into()), ..NetworkOptions::default() });
        let miss = |score| Answer::Miss(Miss { candidates: 1, best_score: score });
        assert_eq!(log.first_miss(), None);
        {
            let mut state = log.state();
            let exact = ReplayedRequest {
                method: "GET".into(),
                url: "x".into(),
                kind: MatchName::Exact,
                score: None,
            };
            state.requests = vec![exact; NetworkReport::MAX_REQUESTS];
        }
        log.replayed(&Request::get("http://a.test/x?y"), &miss(Some(0.5)));
        log.replayed(&Request::get("http://a.test/z"), &miss(None));
        let report = log.report();
        assert_eq!((report.requests.len(), report.matches.missed), (NetworkReport::MAX_REQUESTS, 2));
        assert_eq!(report.sites["http://a.test"].missed, 2);
        let first = log.first_miss().unwrap();
        assert_eq!(
            first,
            "the archive \"shop\" has no answer to GET http://a.test/x?y; the most similar recording has a score of 0.50 (2 requests \
             missed in all)"
        );
    }
}
