//! Compares two reports.

use std::fmt;

use crate::{
    report::{Better, Report, format_short},
    stats::{median, range},
};

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub name: String,
    pub unit: String,
    pub before: f64,
    pub after: f64,
    /// Whether the ranges of the two reports do not overlap. `None` if a report has only one repeat.
    pub is_significant: Option<bool>,
    /// Whether a significant change is an improvement. `None` if the change is not significant or has no direction.
    pub is_better: Option<bool>,
}

/// Notes on differences of machine and options between two reports, and on metrics that only one of them has.
pub fn differences(before: &Report, after: &Report) -> Vec<String> {
    let facts = ["cores", "cpu", "memory_kib", "browser", "browser_kind"]
        .map(|fact| (&before.machine, &after.machine, fact));
    let options = ["instances", "seconds"].map(|option| (&before.options, &after.options, option));
    let mut notes: Vec<String> = facts
        .into_iter()
        .chain(options)
        .filter(|(before, after, name)| before[*name] != after[*name])
        .map(|(before, after, name)| {
            format!("note: {name} was {} before and is {} after", before[name], after[name])
        })
        .collect();
    for (report, other, label) in [(before, after, "before"), (after, before, "after")] {
        let is_missing = |name: &str| !other.metrics.iter().any(|metric| metric.name == name);
        let only: Vec<&str> = report
            .metrics
            .iter()
            .map(|metric| metric.name.as_str())
            .filter(|name| is_missing(name))
            .collect();
        if !only.is_empty() {
            notes.push(format!("only {label}: {}", only.join(", ")));
        }
    }
    notes
}

/// Compares the metrics that both reports have, in the order of the second.
pub fn compare(before: &Report, after: &Report) -> Vec<Change> {
    let changed = after.metrics.iter().filter_map(|metric| {
        let earlier = before.metrics.iter().find(|earlier| earlier.name == metric.name)?;
        let (min, max) = range(&metric.values);
        let (earlier_min, earlier_max) = range(&earlier.values);
        let (before, after) = (median(&earlier.values), median(&metric.values));
        let has_repeats = metric.values.len() > 1 && earlier.values.len() > 1;
        let is_significant = has_repeats.then_some(min > earlier_max || max < earlier_min);
        let is_better = match metric.better {
            Better::Higher if is_significant == Some(true) => Some(after > before),
            Better::Lower if is_significant == Some(true) => Some(after < before),
            _ => None,
        };
        Some(Change {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            before,
            after,
            is_significant,
            is_better,
        })
    });
    changed.collect()
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = match self.before {
            0.0 => "–".to_owned(),
            before => format!("{:+.0} %", (self.after / before - 1.0) * 100.0),
        };
        let verdict = match (self.is_better, self.is_significant) {
            (Some(true), _) => "better",
            (Some(false), _) => "worse",
            (None, Some(true)) => "changed",
            (None, Some(false)) => "within the noise",
            (None, None) => "one repeat: cannot tell",
        };
        let (name, unit) = (&self.name, &self.unit);
        write!(
            out,
            "| {name} | {} → {} {unit} | {percent} | {verdict} |",
            format_short(self.before),
            format_short(self.after)
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn report(speed: [f64; 3], time: [f64; 3]) -> Report {
        let mut report =
            Report { version: 1, machine: Value::Null, options: Value::Null, metrics: Vec::new() };
        for repeat in 0..3 {
            report.add("speed", "1/s", Better::Higher, speed[repeat]);
            report.add("time", "ms", Better::Lower, time[repeat]);
        }
        report
    }

    #[test]
    fn overlapping_ranges_are_not_a_change() {
        let changes = compare(
            &report([9.0, 10.0, 11.0], [5.0, 6.0, 7.0]),
            &report([10.5, 12.0, 13.0], [1.0, 2.0, 3.0]),
        );
        assert_eq!((changes[0].is_significant, changes[0].is_better), (Some(false), None));
        assert_eq!((changes[1].is_significant, changes[1].is_better), (Some(true), Some(true)));
        assert_eq!(changes[1].to_string(), "| time | 6.00 → 2.00 ms | -67 % | better |");
        let single_repeat = |time: f64| {
            let mut report = report([1.0; 3], [1.0; 3]);
            report.metrics[1].values = vec![time];
            report.machine = serde_json::json!({"cores": time});
            report
        };
        let changes = compare(&single_repeat(1.0), &single_repeat(2.0));
        assert_eq!(changes[1].to_string(), "| time | 1.00 → 2.00 ms | +100 % | one repeat: cannot tell |");
        assert_eq!(
            differences(&single_repeat(1.0), &single_repeat(2.0)),
            ["note: cores was 1.0 before and is 2.0 after"]
        );
        let mut without_speed = single_repeat(1.0);
        without_speed.metrics.remove(0);
        assert_eq!(differences(&single_repeat(1.0), &without_speed), ["only before: speed"]);
        let slower = compare(&report([9.0; 3], [1.0; 3]), &report([5.0; 3], [1.0; 3]));
        assert_eq!((slower[0].is_better, slower[1].is_better), (Some(false), None));
    }
}
