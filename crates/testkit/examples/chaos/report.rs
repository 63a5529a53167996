//! The report: which faults were injected and how the system recovered, as a table and as JSON.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde_json::{Value, json};

use crate::faults::Kind;

/// One fault, or two at once, and the recovery times.
pub(crate) struct Round {
    pub(crate) at: Duration,
    pub(crate) faults: Vec<(Kind, String)>,
    /// Time from the end of the fault until every slot was usable again; `None` if that took too long.
    pub(crate) recovered: Option<Duration>,
    /// Time from the end of the fault until another trajectory was finished.
    pub(crate) progress: Option<Duration>,
}

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) rounds: Vec<Round>,
    pub(crate) duration: Duration,
    pub(crate) facts: Vec<(&'static str, Value)>,
    pub(crate) findings: Vec<String>,
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

/// Returns median and maximum in seconds.
fn median_and_max(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let middle = times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    (seconds(middle), seconds(times.last().copied().unwrap_or_default()))
}

/// Times until recovery, times until the next trajectory.
type Times = (Vec<Duration>, Vec<Duration>);

impl Report {
    fn by_kind(&self) -> BTreeMap<Kind, (usize, Times)> {
        let mut all: BTreeMap<Kind, (usize, Times)> = BTreeMap::new();
        for round in &self.rounds {
            for (kind, _) in &round.faults {
                let (count, (recovered, progress)) = all.entry(*kind).or_default();
                *count += 1;
                recovered.extend(round.recovered);
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
        for (kind, (count, (recovered, progress))) in self.by_kind() {
            let (recovered, progress) = (median_and_max(recovered), median_and_max(progress));
            println!(
                "| {} | {count} | {} s / {} s | {} s / {} s |",
                kind.name(),
                recovered.0,
                recovered.1,
                progress.0,
                progress.1
            );
        }
        let all: usize = self.rounds.iter().map(|round| round.faults.len()).sum();
        let recovered = median_and_max(self.rounds.iter().filter_map(|round| round.recovered).collect());
        let progress = median_and_max(self.rounds.iter().filter_map(|round| round.progress).collect());
        println!(
            "| all | {all} | {} s / {} s | {} s / {} s |",
            recovered.0, recovered.1, progress.0, progress.1
        );
        println!("\n| what | result |\n|---|---|");
        println!("| seed | {} |\n| took | {} s |", self.seed, seconds(self.duration));
        for (name, value) in &self.facts {
            println!("| {name} | {} |", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        println!("| found wrong | {} |", self.findings.len());
        for finding in &self.findings {
            println!("WRONG: {finding}");
        }
    }

    pub(crate) fn save(&self, path: &Path) {
        let rounds: Vec<Value> = self
            .rounds
            .iter()
            .map(|round| {
                let faults =
                    round.faults.iter().map(|(kind, target)| json!({"kind": kind.name(), "whom": target}));
                json!({
                    "at": seconds(round.at), "faults": faults.collect::<Vec<_>>(),
                    "whole_after": round.recovered.map(seconds), "progress_after": round.progress.map(seconds),
                })
            })
            .collect();
        let kinds: Vec<Value> = self
            .by_kind()
            .into_iter()
            .map(|(kind, (count, (recovered, progress)))| {
                let (recovered, progress) = (median_and_max(recovered), median_and_max(progress));
                json!({
                    "kind": kind.name(), "count": count,
                    "whole": {"p50": recovered.0, "max": recovered.1}, "progress": {"p50": progress.0, "max": progress.1},
                })
            })
            .collect();
        let facts: serde_json::Map<String, Value> =
            self.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let report = json!({
            "seed": self.seed, "passed": self.findings.is_empty(), "took": seconds(self.duration), "faults": kinds,
            "facts": facts, "wrong": self.findings, "rounds": rounds,
        });
        let text = serde_json::to_string_pretty(&report).unwrap_or_default();
        if let Err(error) = std::fs::write(path, text) {
            eprintln!("cannot save the report as {}: {error}", path.display());
        }
    }
}
