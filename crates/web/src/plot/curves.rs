//! Computes the curves: the values of every measure over the iterations of each split.

use std::collections::{BTreeMap, HashSet};

use store::Split;

use super::chart::{Chart, Charts, Line, Measure, Series};
use super::ema::Ema;
use super::iteration_stats::{IterationStats, LineStats, TaskKey};

/// The values of one iteration by measure and line.
type Values = [[Option<f64>; Line::ALL.len()]; Measure::ALL.len()];

/// Tasks and websites in earlier iterations of a split.
#[derive(Clone, Debug, Default)]
struct SeenBefore {
    tasks: HashSet<TaskKey>,
    websites: HashSet<u64>,
}

/// The values of all iterations that were added.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    values: BTreeMap<(Split, u64), Values>,
    seen: BTreeMap<Split, SeenBefore>,
    trajectories: u64,
}

impl Curves {
    /// Adds an iteration. The iterations of a split must be added in order, because some measures depend on earlier ones.
    pub fn add(&mut self, split: Split, iteration: u64, stats: &IterationStats) {
        let total = stats.line(Line::Overall).metrics.total_trajectories;
        if total == 0 {
            return;
        }
        self.trajectories += total;
        let seen = self.seen.entry(split).or_default();
        let values = Measure::ALL.map(|measure| Line::ALL.map(|line| value(measure, line, stats, seen)));
        self.values.insert((split, iteration), values);
        seen.tasks.extend(stats.tasks.iter().map(|seen| seen.task));
        seen.websites.extend(stats.tasks.iter().map(|seen| seen.website));
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn charts(&self, ema: Option<Ema>) -> Charts {
        let chart = |(row, measure): (usize, Measure)| Chart {
            measure,
            title: measure.title(),
            explanation: measure.explanation(),
            unit: measure.unit(),
            series: self.series(row, ema),
        };
        Charts {
            ema: ema.map(Ema::alpha),
            trajectories: self.trajectories,
            charts: Measure::ALL.into_iter().enumerate().map(chart).collect(),
        }
    }

    fn series(&self, row: usize, ema: Option<Ema>) -> Vec<Series> {
        let mut all = Vec::new();
        for split in Split::ALL {
            for (column, line) in Line::ALL.into_iter().enumerate() {
                let of_split = self.values.iter().filter(|((of, _), _)| *of == split);
                let (iterations, values): (Vec<u64>, Vec<Option<f64>>) =
                    of_split.map(|((_, iteration), values)| (*iteration, values[row][column])).unzip();
                if values.iter().any(Option::is_some) {
                    let smoothed = ema.map(|ema| ema.smooth(&values));
                    all.push(Series { split, line, iterations, values, smoothed });
                }
            }
        }
        all
    }
}

/// Computes one value; `None` if no trajectory contributes to it.
fn value(measure: Measure, line: Line, stats: &IterationStats, seen: &SeenBefore) -> Option<f64> {
    let LineStats { metrics, trajectories, steps, transitions, unchanged } = stats.line(line);
    let when = |whole: u64, value: f64| (whole > 0).then_some(value);
    match measure {
        Measure::Success => when(metrics.scored, metrics.success_rate),
        Measure::Steps => when(*trajectories, metrics.avg_steps),
        Measure::ResponseLength => when(*steps, metrics.avg_chars_per_response),
        Measure::GoBack => when(*steps, metrics.goback_rate),
        Measure::Crashed => when(metrics.total_trajectories, metrics.crashed_rate),
        Measure::Blocked => when(metrics.total_trajectories - metrics.crashed, metrics.blocked_rate),
        Measure::Unchanged => when(*transitions, *unchanged as f64 / *transitions as f64),
        Measure::TasksSeen => share(stats.tasks(line).map(|task| seen.tasks.contains(&task.task))),
        Measure::WebsitesSeen => share(stats.tasks(line).map(|task| seen.websites.contains(&task.website))),
    }
}

/// Returns the fraction of true values; `None` if there are no values.
fn share(values: impl Iterator<Item = bool>) -> Option<f64> {
    let (mut whole, mut part) = (0_u64, 0_u64);
    for value in values {
        whole += 1;
        part += u64::from(value);
    }
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use store::Summary;

    use super::*;

    fn summary(task: &str, website: &str, difficulty: i64, reward: i64) -> Summary {
        Summary {
            task_name: task.to_owned(),
            website: website.to_owned(),
            difficulty,
            reward,
            steps: 5,
            response_chars: 500,
            gobacks: 1,
            unchanged_screenshots: 2,
            first_action: Some("click".to_owned()),
            last_action: Some("answer".to_owned()),
            ..Summary::default()
        }
    }

    fn values(charts: &Charts, measure: Measure, split: Split, line: Line) -> Vec<Option<f64>> {
        let chart = charts.charts.iter().find(|chart| chart.measure == measure).unwrap();
        let found = chart.series.iter().find(|series| series.split == split && series.line == line);
        found.map(|series| series.values.clone()).unwrap_or_default()
    }

    fn two_iterations() -> Curves {
        let mut curves = Curves::default();
        let first = [summary("a", "x", 1, 1), summary("b", "y", 5, 0)];
        let crashed = Summary { steps: 0, ..summary("c", "x", 1, 0) };
        let blocked = Summary { is_blocked: true, ..summary("d", "z", 8, 0) };
        let second = [summary("a", "x", 1, 0), crashed, blocked, summary("a", "other", 1, 1)];
        curves.add(Split::Train, 0, &IterationStats::of(&first));
        curves.add(Split::Train, 3, &IterationStats::of(&second));
        curves.add(Split::Test, 0, &IterationStats::of(&[summary("a", "x", 1, 1)]));
        curves.add(Split::Test, 1, &IterationStats::of(&[]));
        curves
    }

    #[test]
    fn measures_use_their_denominators() {
        let charts = two_iterations().charts(None);
        let train = |measure, line| values(&charts, measure, Split::Train, line);
        assert_eq!(train(Measure::Success, Line::Overall), [Some(0.5), Some(0.5)]);
        assert_eq!(train(Measure::Success, Line::Easy), [Some(1.0), Some(0.5)]);
        assert_eq!(
            train(Measure::Success, Line::Medium),
            [Some(0.0), None],
            "the second iteration has no medium task"
        );
        assert_eq!(train(Measure::Success, Line::Hard), [], "a line without values is left out");
        assert_eq!(train(Measure::Steps, Line::Overall), [Some(5.0), Some(5.0)]);
        assert_eq!(train(Measure::ResponseLength, Line::Overall), [Some(100.0), Some(100.0)]);
        assert_eq!(train(Measure::GoBack, Line::Overall), [Some(0.2), Some(0.2)]);
        assert_eq!(train(Measure::Crashed, Line::Overall), [Some(0.0), Some(0.25)]);
        assert_eq!(train(Measure::Blocked, Line::Overall), [Some(0.0), Some(1.0 / 3.0)]);
        assert_eq!(train(Measure::Blocked, Line::Hard), [None, Some(1.0)]);
        assert_eq!(train(Measure::Unchanged, Line::Overall), [Some(0.5), Some(0.5)]);
    }

    #[test]
    fn tasks_seen_in_other_split_are_not_counted() {
        let charts = two_iterations().charts(None);
        let train = |measure, line| values(&charts, measure, Split::Train, line);
        // In the second iteration only "a" on "x" was seen before; of its four websites, "x" (twice).
        assert_eq!(train(Measure::TasksSeen, Line::Overall), [Some(0.0), Some(0.25)]);
        assert_eq!(train(Measure::WebsitesSeen, Line::Overall), [Some(0.0), Some(0.5)]);
        assert_eq!(train(Measure::WebsitesSeen, Line::Easy), [Some(0.0), Some(2.0 / 3.0)]);
        let test = values(&charts, Measure::TasksSeen, Split::Test, Line::Overall);
        assert_eq!(test, [Some(0.0)], "train does not count for test, and an empty iteration is left out");
    }

    #[test]
    fn smoothed_values_are_added_to_series() {
        let charts = two_iterations().charts(Some(Ema::new(0.5).unwrap()));
        let series = &charts.charts[0].series[1];
        assert_eq!((series.line, &series.values), (Line::Easy, &vec![Some(1.0), Some(0.5)]));
        assert_eq!(series.smoothed, Some(vec![Some(1.0), Some(0.75)]));
        assert_eq!(series.iterations, [0, 3]);
    }
}
