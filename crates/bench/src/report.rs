//! What was measured: figures by name, each with all its repeats, as JSON and as a table.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Options,
    stats::{median, spread},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Higher,
    Lower,
    /// A fact, neither good nor bad.
    Neither,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub name: String,
    pub unit: String,
    pub better: Better,
    /// One value a repeat.
    pub values: Vec<f64>,
    /// What it must reach, if something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
}

impl Metric {
    pub fn median(&self) -> f64 {
        median(&self.values)
    }

    /// `None` without a target.
    pub fn reached(&self) -> Option<bool> {
        let target = self.target?;
        Some(match self.better {
            Better::Higher => self.median() >= target,
            _ => self.median() <= target,
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub version: u32,
    pub machine: Value,
    pub options: Value,
    pub metrics: Vec<Metric>,
}

/// Of the file's form.
const VERSION: u32 = 1;

impl Report {
    /// Reads a file of `webgym bench --json`; says why it cannot.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let report: Self =
            serde_json::from_slice(text).map_err(|_| "is not a file of webgym bench --json")?;
        if report.version != VERSION {
            return Err(format!("has version {}, and this webgym knows {VERSION}", report.version));
        }
        match report.metrics.iter().find(|metric| metric.values.is_empty()) {
            Some(metric) => Err(format!("has no value for {:?}", metric.name)),
            None => Ok(report),
        }
    }

    pub(crate) fn new(machine: Value, options: &Options) -> Self {
        let options =
            json!({"instances": options.instances, "seconds": options.seconds, "repeats": options.repeats});
        Self { version: VERSION, machine, options, metrics: Vec::new() }
    }

    /// Adds one repeat's value.
    pub(crate) fn add(&mut self, name: &str, unit: &str, better: Better, value: f64) {
        match self.metrics.iter_mut().find(|metric| metric.name == name) {
            Some(metric) => metric.values.push(value),
            None => self.metrics.push(Metric {
                name: name.to_owned(),
                unit: unit.to_owned(),
                better,
                values: vec![value],
                target: None,
            }),
        }
    }

    pub(crate) fn aim(&mut self, name: &str, target: f64) {
        if let Some(metric) = self.metrics.iter_mut().find(|metric| metric.name == name) {
            metric.target = Some(target);
        }
    }

    /// A metric that is the ratio of two others, repeat by repeat.
    pub(crate) fn ratio(&mut self, name: &str, better: Better, above: &str, below: &str) {
        let values = |name: &str| {
            self.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.values.clone())
        };
        let (Some(above), Some(below)) = (values(above), values(below)) else { return };
        for (above, below) in above.iter().zip(&below) {
            self.add(name, "×", better, above / below);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "| what | median | least–most | target | |")?;
        writeln!(out, "|---|---|---|---|---|")?;
        for metric in &self.metrics {
            let spread = match (spread(&metric.values), metric.values.len()) {
                (_, ..=1) => "–".to_owned(),
                ((least, most), _) => format!("{}–{}", short(least), short(most)),
            };
            let target = metric.target.map(|target| {
                let sign = if metric.better == Better::Higher { "≥" } else { "≤" };
                format!("{sign} {}", short(target))
            });
            let reached = metric.reached().map_or("", |reached| if reached { "reached" } else { "missed" });
            writeln!(
                out,
                "| {} | {} {} | {spread} | {} | {reached} |",
                metric.name,
                short(metric.median()),
                metric.unit,
                target.unwrap_or_default(),
            )?;
        }
        Ok(())
    }
}

/// Three digits that matter.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report { version: 1, machine: Value::Null, options: Value::Null, metrics: Vec::new() }
    }

    #[test]
    fn a_target_is_reached_from_the_right_side() {
        let mut report = report();
        for value in [10.0, 12.0, 11.0] {
            report.add("speed", "1/s", Better::Higher, value);
            report.add("time", "ms", Better::Lower, value);
        }
        report.aim("speed", 11.5);
        report.aim("time", 11.5);
        assert_eq!((report.metrics[0].reached(), report.metrics[1].reached()), (Some(false), Some(true)));
        let table = report.to_string();
        assert!(table.contains("| speed | 11.0 1/s | 10.0–12.0 | ≥ 11.5 | missed |"), "{table}");
        assert!(table.contains("| time | 11.0 ms | 10.0–12.0 | ≤ 11.5 | reached |"), "{table}");
    }

    #[test]
    fn only_files_of_ours_are_read() {
        let mut report = report();
        report.add("speed", "1/s", Better::Higher, 1.0);
        let read = |report: &Report| Report::read(&serde_json::to_vec(report).unwrap()).map(|_| ());
        assert_eq!(read(&report), Ok(()));
        report.metrics[0].values.clear();
        assert!(read(&report).unwrap_err().contains("\"speed\""));
        report.version = 7;
        assert!(read(&report).unwrap_err().contains("version 7"));
        assert!(Report::read(b"").unwrap_err().contains("not a file of"));
    }

    #[test]
    fn ratios_are_taken_repeat_by_repeat() {
        let mut report = report();
        for (ours, limit) in [(8.0, 10.0), (18.0, 20.0)] {
            report.add("ours", "1/s", Better::Higher, ours);
            report.add("limit", "1/s", Better::Higher, limit);
        }
        report.ratio("share", Better::Higher, "ours", "limit");
        assert_eq!(report.metrics[2].values, [0.8, 0.9]);
    }
}
