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
    /// The two spreads do not touch: more than noise.
    pub clear: bool,
    /// For the better, for the worse; `None` when it cannot be said.
    pub better: Option<bool>,
}

/// The metrics that both have, in the order of the second.
pub fn compare(before: &Report, after: &Report) -> Vec<Change> {
    let changed = after.metrics.iter().filter_map(|metric| {
        let earlier = before.metrics.iter().find(|earlier| earlier.name == metric.name)?;
        let (least, most) = spread(&metric.values);
        let (earlier_least, earlier_most) = spread(&earlier.values);
        let (before, after) = (median(&earlier.values), median(&metric.values));
        let clear = least > earlier_most || most < earlier_least;
        let better = match metric.better {
            Better::Higher if clear => Some(after > before),
            Better::Lower if clear => Some(after < before),
            _ => None,
        };
        Some(Change { name: metric.name.clone(), unit: metric.unit.clone(), before, after, clear, better })
    });
    changed.collect()
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.after / self.before - 1.0) * 100.0;
        let verdict = match (self.better, self.clear) {
            (Some(true), _) => "better",
            (Some(false), _) => "worse",
            (None, true) => "changed",
            (None, false) => "within the noise",
        };
        let (name, unit) = (&self.name, &self.unit);
        write!(
            out,
            "| {name} | {} → {} {unit} | {percent:+.0} % | {verdict} |",
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
        assert_eq!((changes[0].clear, changes[0].better), (false, None));
        assert_eq!((changes[1].clear, changes[1].better), (true, Some(true)));
        assert_eq!(changes[1].to_string(), "| time | 6.00 → 2.00 ms | -67 % | better |");
        let back = compare(&report([9.0; 3], [1.0; 3]), &report([5.0; 3], [1.0; 3]));
        assert_eq!((back[0].better, back[1].better), (Some(false), None));
    }
}
