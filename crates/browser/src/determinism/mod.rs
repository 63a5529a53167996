//! Deterministic mode of an instance: clock, randomness, frames and animations follow a virtual clock that only commands
//! advance, so that the same actions give the same observations. Owns the scripts that run before those of pages and
//! workers, and the clock that the pages of a session share; [`crate::page`] moves it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cdp::{Session, protocol as p};
use serde_json::json;

const RANDOM_SCRIPT: &str = include_str!("random.js");
const PAGE_SCRIPT: &str = include_str!("page.js");
const WORKER_SCRIPT: &str = include_str!("worker.js");

/// A browser with deterministic sessions needs this flag. Without it the compositor waits for a deadline in virtual time, which
/// never comes once the real time is ahead of it: neither frames nor screenshots would be made.
pub const DETERMINISM_FLAG: &str = "--run-all-compositor-stages-before-draw";

/// What is fixed in a session so that the same actions give the same observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Determinism {
    /// The Unix time in milliseconds at which the clock of the session starts.
    pub start_ms: f64,
    /// The seed of the random numbers of pages and workers.
    pub seed: u32,
}

/// The virtual time that a command gives to the page.
const ACTION_BUDGET_MS: f64 = 1000.0;
/// The virtual time that a new document gets.
const DOCUMENT_BUDGET_MS: f64 = 3000.0;

/// Bounds the memory of a page that starts workers without end.
const MAX_WORKER_URLS: usize = 1000;

/// The virtual clock of a session. Each page has its own in its process, which catches up when the page is shown.
pub(crate) struct SessionClock {
    seed: u32,
    page_script: String,
    state: Mutex<ClockState>,
    /// The number of workers by URL: two workers with one URL get different random numbers.
    workers: Mutex<HashMap<String, u32>>,
}

struct ClockState {
    now_ms: f64,
    /// The virtual time that the current command asks for.
    requested_ms: Option<f64>,
}

impl SessionClock {
    pub(crate) fn new(determinism: Determinism) -> Self {
        let Determinism { start_ms, seed } = determinism;
        Self {
            seed,
            page_script: script(PAGE_SCRIPT, seed),
            state: Mutex::new(ClockState { now_ms: start_ms, requested_ms: None }),
            workers: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Unix time of the session in milliseconds.
    pub(crate) fn now_ms(&self) -> f64 {
        self.state().now_ms
    }

    /// Makes the current command last this long.
    pub(crate) fn request(&self, duration_ms: f64) {
        self.state().requested_ms = Some(duration_ms);
    }

    /// Moves the clock by the time of a command, or of a new document, and returns where it is then.
    pub(crate) fn advance(&self, is_new_document: bool) -> f64 {
        let mut state = self.state();
        let budget = if is_new_document { DOCUMENT_BUDGET_MS } else { ACTION_BUDGET_MS };
        state.now_ms += state.requested_ms.take().map_or(budget, |requested| requested.max(budget));
        state.now_ms
    }

    /// Installs the script in a new target, before any script of the page runs.
    pub(crate) fn install(&self, session: &Session) {
        let params = json!({"source": self.page_script, "runImmediately": true});
        session.send_no_reply(p::PAGE_ADD_SCRIPT_TO_EVALUATE_ON_NEW_DOCUMENT, &params);
    }

    /// The script of the next worker, whose own script has this URL.
    pub(crate) fn worker_script(&self, url: &str) -> String {
        let number = self.count_worker(url);
        let now = self.now_ms();
        let constants = format!("const NOW = {now}, NUMBER = {number}, URL_OF_WORKER = {};\n", json!(url));
        script(&format!("{constants}{WORKER_SCRIPT}"), self.seed)
    }

    /// Returns how many workers with this URL there were before.
    fn count_worker(&self, url: &str) -> u32 {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if workers.len() >= MAX_WORKER_URLS && !workers.contains_key(url) {
            return 0;
        }
        let count = workers.entry(url.to_owned()).or_default();
        *count += 1;
        *count - 1
    }
}

fn script(body: &str, seed: u32) -> String {
    let body = body.replace("RANDOM\n", RANDOM_SCRIPT);
    format!("(() => {{\nconst SEED = {seed};\n{body}}})();")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_advances_by_command_document_and_request() {
        let clock = SessionClock::new(Determinism { start_ms: 1000.0, seed: 1 });
        let mut times = vec![clock.advance(false), clock.advance(true)];
        clock.request(60_000.0);
        // The request holds for one command.
        times.extend([clock.advance(false), clock.advance(false)]);
        assert_eq!(times, [2000.0, 5000.0, 65_000.0, 66_000.0]);
    }

    #[test]
    fn scripts_contain_seed_and_random_part() {
        let clock = SessionClock::new(Determinism { start_ms: 7.0, seed: 42 });
        let first = clock.worker_script("http://a/");
        assert!(first.contains("const SEED = 42;") && first.contains("random32"), "{first}");
        assert_ne!(first, clock.worker_script("http://a/"), "workers are numbered");
        assert!(clock.page_script.contains("random32"));
    }
}
