//! What moved between two reports.

use std::fmt;

use crate::{
    report::{Better, Report, short},
    stats::{median, spread},
};

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub name: String,
    pub unit: String,
    pub before: f64,
    pub after: f64,
    /// The two spreads do not touch: more than noise. `None` where a single repeat has no spread.
    pub clear: Option<bool>,
    /// For the better, for the worse; `None` when it cannot be said.
    pub better: Option<bool>,
}

/// What keeps two reports from being compared figure by figure, and what only one of them has.
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
    for (one, other, whose) in [(before, after, "before"), (after, before, "after")] {
        let missing = |name: &str| !other.metrics.iter().any(|metric| metric.name == name);
        let only: Vec<&str> =
            one.metrics.iter().map(|metric| metric.name.as_str()).filter(|name| missing(name)).collect();
        if !only.is_empty() {
            notes.push(format!("only {whose}: {}", only.join(", ")));
        }
    }
    notes
}

/// The metrics that both have, in the order of the second.
pub fn compare(before: &Report, after: &Report) -> Vec<Change> {
    let changed = after.metrics.iter().filter_map(|metric| {
        let earlier = before.metrics.iter().find(|earlier| earlier.name == metric.name)?;
        let (least, most) = spread(&metric.values);
        let (earlier_least, earlier_most) = spread(&earlier.values);
        let (before, after) = (median(&earlier.values), median(&metric.values));
        let repeated = metric.values.len() > 1 && earlier.values.len() > 1;
        let clear = repeated.then_some(least > earlier_most || most < earlier_least);
        let better = match metric.better {
            Better::Higher if clear == Some(true) => Some(after > before),
            Better::Lower if clear == Some(true) => Some(after < before),
            _ => None,
        };
        Some(Change { name: metric.name.clone(), unit: metric.unit.clone(), before, after, clear, better })
    });
    changed.collect()
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = match self.before {
            0.0 => "–".to_owned(),
            before => format!("{:+.0} %", (self.after / before - 1.0) * 100.0),
        };
        let verdict = match (self.better, self.clear) {
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
            short(self.before),
            short(self.after)
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
    fn noise_is_not_called_a_change() {
        let changes = compare(
            &report([9.0, 10.0, 11.0], [5.0, 6.0, 7.0]),
            &report([10.5, 12.0, 13.0], [1.0, 2.0, 3.0]),
        );
        assert_eq!((changes[0].clear, changes[0].better), (Some(false), None));
        assert_eq!((changes[1].clear, changes[1].better), (Some(true), Some(true)));
        assert_eq!(changes[1].to_string(), "| time | 6.00 → 2.00 ms | -67 % | better |");
        let once = |time: f64| {
            let mut report = report([1.0; 3], [1.0; 3]);
            report.metrics[1].values = vec![time];
            report.machine = serde_json::json!({"cores": time});
            report
        };
        let changes = compare(&once(1.0), &once(2.0));
        assert_eq!(changes[1].to_string(), "| time | 1.00 → 2.00 ms | +100 % | one repeat: cannot tell |");
        assert_eq!(differences(&once(1.0), &once(2.0)), ["note: cores was 1.0 before and is 2.0 after"]);
        let mut less = once(1.0);
        less.metrics.remove(0);
        assert_eq!(differences(&once(1.0), &less), ["only before: speed"]);
        let back = compare(&report([9.0; 3], [1.0; 3]), &report([5.0; 3], [1.0; 3]));
        assert_eq!((back[0].better, back[1].better), (Some(false), None));
    }
}
