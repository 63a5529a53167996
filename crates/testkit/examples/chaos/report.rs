//! What was done to the system and how it bore it: a table for people, JSON for programs, a verdict for both.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde_json::{Value, json};

use crate::faults::Kind;

/// One fault, or two at once, and how long the system took afterwards.
pub(crate) struct Round {
    pub(crate) at: Duration,
    pub(crate) faults: Vec<(Kind, String)>,
    /// From the end of the fault until every slot was usable again; `None`: not within the bound.
    pub(crate) whole: Option<Duration>,
    /// … until another trajectory was finished.
    pub(crate) progress: Option<Duration>,
}

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) rounds: Vec<Round>,
    pub(crate) took: Duration,
    pub(crate) facts: Vec<(&'static str, Value)>,
    pub(crate) wrong: Vec<String>,
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

/// The middle one and the largest.
fn spread(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let middle = times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    (seconds(middle), seconds(times.last().copied().unwrap_or_default()))
}

/// Times until whole, times until the next trajectory.
type Times = (Vec<Duration>, Vec<Duration>);

impl Report {
    fn by_kind(&self) -> BTreeMap<Kind, (usize, Times)> {
        let mut all: BTreeMap<Kind, (usize, Times)> = BTreeMap::new();
        for round in &self.rounds {
            for (kind, _) in &round.faults {
                let (count, (whole, progress)) = all.entry(*kind).or_default();
                *count += 1;
                whole.extend(round.whole);
                progress.extend(round.progress);
            }
        }
        all
    }

    pub(crate) fn print(&self) {
        println!(
            "| fault | times | all slots usable again, p50 / max | next trajectory finished, p50 / max |"
        );
        println!("|---|---|---|---|");
        for (kind, (count, (whole, progress))) in self.by_kind() {
            let (whole, progress) = (spread(whole), spread(progress));
            println!(
                "| {} | {count} | {} s / {} s | {} s / {} s |",
                kind.name(),
                whole.0,
                whole.1,
                progress.0,
                progress.1
            );
        }
        let all: usize = self.rounds.iter().map(|round| round.faults.len()).sum();
        let whole = spread(self.rounds.iter().filter_map(|round| round.whole).collect());
        let progress = spread(self.rounds.iter().filter_map(|round| round.progress).collect());
        println!("| all | {all} | {} s / {} s | {} s / {} s |", whole.0, whole.1, progress.0, progress.1);
        println!("\n| what | result |\n|---|---|");
        println!("| seed | {} |\n| took | {} s |", self.seed, seconds(self.took));
        for (name, value) in &self.facts {
            println!("| {name} | {} |", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        println!("| found wrong | {} |", self.wrong.len());
        for what in &self.wrong {
            println!("WRONG: {what}");
        }
    }

    pub(crate) fn save(&self, path: &Path) {
        let rounds: Vec<Value> = self
            .rounds
            .iter()
            .map(|round| {
                let faults =
                    round.faults.iter().map(|(kind, whom)| json!({"kind": kind.name(), "whom": whom}));
                json!({
                    "at": seconds(round.at), "faults": faults.collect::<Vec<_>>(),
                    "whole_after": round.whole.map(seconds), "progress_after": round.progress.map(seconds),
                })
            })
            .collect();
        let kinds: Vec<Value> = self
            .by_kind()
            .into_iter()
            .map(|(kind, (count, (whole, progress)))| {
                let (whole, progress) = (spread(whole), spread(progress));
                json!({
                    "kind": kind.name(), "count": count,
                    "whole": {"p50": whole.0, "max": whole.1}, "progress": {"p50": progress.0, "max": progress.1},
                })
            })
            .collect();
        let facts: serde_json::Map<String, Value> =
            self.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let report = json!({
            "seed": self.seed, "passed": self.wrong.is_empty(), "took": seconds(self.took), "faults": kinds,
            "facts": facts, "wrong": self.wrong, "rounds": rounds,
        });
        let text = serde_json::to_string_pretty(&report).unwrap_or_default();
        if let Err(error) = std::fs::write(path, text) {
            eprintln!("the report cannot be saved as {}: {error}", path.display());
        }
    }
}
