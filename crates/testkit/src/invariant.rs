//! The slots of a farm by state, read from `/metrics`, and the sum that must always come out.

use crate::http::Http;

/// Slots by state, and the browsers behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    pub available: usize,
    pub in_use: usize,
    pub starting: usize,
    pub dead: usize,
    pub capacity: usize,
    pub browsers: usize,
    pub restarts: usize,
}

impl Slots {
    /// As a node (or a master with one inside) tells them now.
    pub async fn of(http: &Http) -> Self {
        Self::read(&http.get("/metrics", &[]).await.text())
    }

    /// Reads Prometheus' text.
    pub fn read(metrics: &str) -> Self {
        let value = |name: &str| -> usize {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("no {name} in\n{metrics}")).trim().parse().expect("a count")
        };
        let state = |state: &str| value(&format!("webgym_slots{{state=\"{state}\"}}"));
        Self {
            available: state("available"),
            in_use: state("in_use"),
            starting: state("starting"),
            dead: state("dead"),
            capacity: value("webgym_capacity"),
            browsers: value("webgym_browsers"),
            restarts: value("webgym_browser_restarts_total"),
        }
    }

    /// Every slot is in exactly one state.
    pub fn add_up(&self) -> bool {
        self.available + self.in_use + self.starting + self.dead == self.capacity
    }

    /// Every slot is clean and waiting.
    pub fn all_free(&self) -> bool {
        self.available == self.capacity
    }
}
