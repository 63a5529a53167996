//! The measured metrics with the values of all repeats, as JSON and as a table.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Options,
    stats::{median, range},
};

/// Which direction of a metric is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Higher,
    Lower,
    /// Informational.
    Neither,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub name: String,
    pub unit: String,
    pub better: Better,
    /// One value per repeat.
    pub values: Vec<f64>,
    /// The value to reach, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
}

impl Metric {
    pub fn median(&self) -> f64 {
        median(&self.values)
    }

    /// Whether the median reaches the target; `None` without a target.
    pub fn is_reached(&self) -> Option<bool> {
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

/// Version of the file format.
const FORMAT_VERSION: u32 = 1;

impl Report {
    /// Parses a file written by `webgym bench --json`. The error is the reason why it cannot be used.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let mut report: Self =
            serde_json::from_slice(text).map_err(|_| "is not a file written by webgym bench --json")?;
        if report.version != FORMAT_VERSION {
            return Err(format!(
                "has version {}; this webgym reads version {FORMAT_VERSION}",
                report.version
            ));
        }
        for metric in &mut report.metrics {
            // Earlier files say "steps a second"; reports are compared by the name.
            metric.name = metric.name.replace(" a second", " per second");
        }
        match report.metrics.iter().find(|metric| metric.values.is_empty()) {
            Some(metric) => Err(format!("has no value for {:?}", metric.name)),
            None => Ok(report),
        }
    }

    pub(crate) fn new(machine: Value, options: &Options) -> Self {
        let options =
            json!({"instances": options.instances, "seconds": options.seconds, "repeats": options.repeats});
        Self { version: FORMAT_VERSION, machine, options, metrics: Vec::new() }
    }

    /// Adds the value of one repeat.
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

    pub(crate) fn set_target(&mut self, name: &str, target: f64) {
        if let Some(metric) = self.metrics.iter_mut().find(|metric| metric.name == name) {
            metric.target = Some(target);
        }
    }

    /// Adds a metric that is the ratio of two others, computed for each repeat.
    pub(crate) fn add_ratio(&mut self, name: &str, better: Better, numerator: &str, denominator: &str) {
        let values = |name: &str| {
            self.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.values.clone())
        };
        let (Some(numerators), Some(denominators)) = (values(numerator), values(denominator)) else { return };
        for (numerator, denominator) in numerators.iter().zip(&denominators) {
            self.add(name, "×", better, numerator / denominator);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "| metric | median | min–max | target | |")?;
        writeln!(out, "|---|---|---|---|---|")?;
        for metric in &self.metrics {
            let range = match (range(&metric.values), metric.values.len()) {
                (_, ..=1) => "–".to_owned(),
                ((min, max), _) => format!("{}–{}", format_short(min), format_short(max)),
            };
            let target = metric.target.map(|target| {
                let sign = if metric.better == Better::Higher { "≥" } else { "≤" };
                format!("{sign} {}", format_short(target))
            });
            let status = metric.is_reached().map_or("", |reached| if reached { "reached" } else { "missed" });
            writeln!(
                out,
                "| {} | {} {} | {range} | {} | {status} |",
                metric.name,
                format_short(metric.median()),
                metric.unit,
                target.unwrap_or_default(),
            )?;
        }
        Ok(())
    }
}

/// Formats a number with about three significant digits.
pub(crate) fn format_short(value: f64) -> String {
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
    fn target_direction_depends_on_the_metric() {
        let mut report = report();
        for value in [10.0, 12.0, 11.0] {
            report.add("speed", "1/s", Better::Higher, value);
            report.add("time", "ms", Better::Lower, value);
        }
        report.set_target("speed", 11.5);
        report.set_target("time", 11.5);
        assert_eq!(
            (report.metrics[0].is_reached(), report.metrics[1].is_reached()),
            (Some(false), Some(true))
        );
        let table = report.to_string();
        assert!(table.contains("| speed | 11.0 1/s | 10.0–12.0 | ≥ 11.5 | missed |"), "{table}");
        assert!(table.contains("| time | 11.0 ms | 10.0–12.0 | ≤ 11.5 | reached |"), "{table}");
    }

    #[test]
    fn invalid_report_files_are_refused() {
        let mut report = report();
        report.add("speed", "1/s", Better::Higher, 1.0);
        let read = |report: &Report| Report::read(&serde_json::to_vec(report).unwrap()).map(|_| ());
        assert_eq!(read(&report), Ok(()));
        report.metrics[0].values.clear();
        assert!(read(&report).unwrap_err().contains("\"speed\""));
        report.version = 7;
        assert!(read(&report).unwrap_err().contains("version 7"));
        assert!(Report::read(b"").unwrap_err().contains("is not a file written by"));
    }

    #[test]
    fn earlier_metric_names_are_read_as_the_new_ones() {
        let mut report = report();
        report.add("steps a second, /step", "1/s", Better::Higher, 1.0);
        let read = Report::read(&serde_json::to_vec(&report).unwrap()).unwrap();
        assert_eq!(read.metrics[0].name, "steps per second, /step");
    }

    #[test]
    fn ratios_are_computed_per_repeat() {
        let mut report = report();
        for (ours, limit) in [(8.0, 10.0), (18.0, 20.0)] {
            report.add("ours", "1/s", Better::Higher, ours);
            report.add("limit", "1/s", Better::Higher, limit);
        }
        report.add_ratio("share", Better::Higher, "ours", "limit");
        assert_eq!(report.metrics[2].values, [0.8, 0.9]);
    }
}
