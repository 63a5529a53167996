//! Computes the curves: the values of every measure over the iterations of each split.

use std::collections::{BTreeMap, HashSet};

use store::Split;
use store::metrics::{SiteKey, TaskKey};

use super::chart::{Chart, ChartOptions, Charts, Line, Measure, Series, XAxis};
use super::ema::Ema;
use super::iteration_stats::IterationStats;

/// The values of one iteration by measure and line.
type Values = [[Option<f64>; Line::ALL.len()]; Measure::ALL.len()];

/// Tasks and websites in earlier iterations of a split.
#[derive(Clone, Debug, Default)]
struct SeenBefore {
    tasks: HashSet<TaskKey>,
    websites: HashSet<SiteKey>,
}

/// The values of one iteration and the number of trajectories of its split so far.
#[derive(Clone, Debug)]
struct Point {
    values: Values,
    trajectories_so_far: u64,
}

/// The values of all iterations that were added.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    points: BTreeMap<(Split, u64), Point>,
    /// The number of trajectories by split.
    trajectories: BTreeMap<Split, u64>,
    seen: BTreeMap<Split, SeenBefore>,
}

impl Curves {
    /// Adds an iteration. The iterations of a split must be added in order, because some measures depend on earlier ones.
    pub fn add(&mut self, split: Split, iteration: u64, stats: &IterationStats) {
        let total = stats.line(Line::Overall).metrics.total_trajectories;
        if total == 0 {
            return;
        }
        let trajectories = self.trajectories.entry(split).or_default();
        *trajectories += total;
        let seen = self.seen.entry(split).or_default();
        let values = Measure::ALL.map(|measure| Line::ALL.map(|line| value(measure, line, stats, seen)));
        self.points.insert((split, iteration), Point { values, trajectories_so_far: *trajectories });
        seen.tasks.extend(stats.tasks.iter().map(|seen| seen.task));
        seen.websites.extend(stats.tasks.iter().map(|seen| seen.website));
    }

    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the charts. `options.is_ood_only` is only recorded: it has an effect on what is added.
    pub fn charts(&self, options: ChartOptions) -> Charts {
        let ChartOptions { ema, x, is_ood_only } = options;
        let chart = |(row, measure): (usize, Measure)| Chart {
            measure,
            title: measure.title(),
            explanation: measure.explanation(),
            unit: measure.unit(),
            series: self.series(row, ema, x),
        };
        Charts {
            ema: ema.map(Ema::alpha),
            x,
            is_ood_only,
            trajectories: self.trajectories.values().sum(),
            charts: Measure::ALL
                .into_iter()
                .enumerate()
                .map(chart)
                .filter(|chart| !chart.measure.is_optional() || !chart.series.is_empty())
                .collect(),
        }
    }

    fn series(&self, row: usize, ema: Option<Ema>, x_axis: XAxis) -> Vec<Series> {
        let mut all = Vec::new();
        for split in Split::ALL {
            let of_split = || self.points.iter().filter(move |((of, _), _)| *of == split);
            let iterations: Vec<u64> = of_split().map(|((_, iteration), _)| *iteration).collect();
            let x = match x_axis {
                XAxis::Iterations => iterations.clone(),
                XAxis::Trajectories => of_split().map(|(_, point)| point.trajectories_so_far).collect(),
            };
            for (column, line) in Line::ALL.into_iter().enumerate() {
                let values: Vec<Option<f64>> =
                    of_split().map(|(_, point)| point.values[row][column]).collect();
                if values.iter().any(Option::is_some) {
                    let smoothed = ema.map(|ema| ema.smooth(&values));
                    let (iterations, x) = (iterations.clone(), x.clone());
                    all.push(Series { split, line, iterations, x, values, smoothed });
                }
            }
        }
        all
    }
}

/// Computes one value; `None` if no trajectory contributes to it.
fn value(measure: Measure, line: Line, stats: &IterationStats, seen: &SeenBefore) -> Option<f64> {
    let of_line = stats.line(line);
    let metrics = &of_line.metrics;
    let when = |whole: u64, value: f64| (whole > 0).then_some(value);
    let ratio = |part: u64, whole: u64| when(whole, part as f64 / whole as f64);
    let not_crashed = metrics.counted() - metrics.crashed;
    match measure {
        Measure::Success => when(metrics.scored, metrics.success_rate),
        Measure::SuccessInLimit => ratio(of_line.successes_in_limit, metrics.scored),
        Measure::PassAtK => of_line.pass_at_k.map(|pass_at_k| pass_at_k.rate),
        Measure::Steps => when(of_line.trajectories, metrics.avg_steps),
        Measure::ResponseLength => when(of_line.steps, metrics.avg_chars_per_response),
        Measure::MemoryLength => ratio(of_line.memory_chars, of_line.steps_with_memory),
        Measure::GoBack => when(of_line.steps, metrics.goback_rate),
        Measure::Unchanged => ratio(of_line.unchanged, of_line.transitions),
        Measure::UnchangedInSuccesses => {
            ratio(of_line.unchanged_in_successes, of_line.transitions_in_successes)
        }
        Measure::Trajectories => when(metrics.total_trajectories, of_line.trajectories as f64),
        Measure::Crashed => when(metrics.total_trajectories, metrics.crashed_rate),
        Measure::Blocked => when(not_crashed, metrics.blocked_rate),
        Measure::TasksSeen => share(stats.tasks(line).map(|task| seen.tasks.contains(&task.task))),
        Measure::WebsitesSeen => share(stats.tasks(line).map(|task| seen.websites.contains(&task.website))),
        Measure::WebsitesRepeated => share(stats.has_repeated_website(line)),
        Measure::ReplayExact => ratio(of_line.replay.exact, of_line.replay.total()),
        Measure::ReplaySimilar => {
            ratio(of_line.replay.normalised + of_line.replay.scored, of_line.replay.total())
        }
        Measure::ReplayMissed => ratio(of_line.replay.missed, of_line.replay.total()),
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
    use proto::network::MatchCounts;
    use proto::trajectory::Outcome;
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
            memory_chars: Some(60),
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

    fn charts_of(summaries: &[Summary]) -> Charts {
        let mut curves = Curves::default();
        curves.add(Split::Train, 0, &IterationStats::of(summaries));
        curves.charts(ChartOptions::default())
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
        curves.add(Split::Test, 1, &IterationStats::of(&Vec::new()));
        curves
    }

    #[test]
    fn measures_use_their_denominators() {
        let charts = two_iterations().charts(ChartOptions::default());
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
        assert_eq!(train(Measure::MemoryLength, Line::Overall), [Some(12.0), Some(12.0)]);
        assert_eq!(train(Measure::Trajectories, Line::Overall), [Some(2.0), Some(2.0)]);
        assert_eq!(train(Measure::Trajectories, Line::Hard), [None, Some(0.0)], "the only one was blocked");
    }

    #[test]
    fn cancelled_trajectories_are_left_out() {
        let cancelled = Summary { outcome: Some(Outcome::Cancelled), ..summary("c", "z", 1, 0) };
        let charts = charts_of(&[cancelled.clone(), summary("a", "x", 1, 1)]);
        let overall = |measure| values(&charts, measure, Split::Train, Line::Overall);
        assert_eq!(overall(Measure::Trajectories), [Some(1.0)]);
        assert_eq!(overall(Measure::Blocked), [Some(0.0)]);
        assert_eq!(overall(Measure::Success), [Some(1.0)]);
        let only_cancelled = charts_of(&[cancelled]);
        assert_eq!(values(&only_cancelled, Measure::Blocked, Split::Train, Line::Overall), []);
    }

    #[test]
    fn coverage_of_archives_has_charts_only_if_there_is_any() {
        let is_shown = |charts: &Charts| charts.charts.iter().any(|chart| chart.measure.is_optional());
        assert!(!is_shown(&charts_of(&[summary("a", "x", 1, 1)])));
        let replay = Some(MatchCounts { exact: 6, normalised: 1, scored: 1, missed: 2 });
        let missed = Summary { outcome: Some(Outcome::ReplayMiss), replay, ..summary("a", "x", 1, 0) };
        let charts = charts_of(&[missed, summary("b", "x", 1, 1)]);
        let overall = |measure| values(&charts, measure, Split::Train, Line::Overall);
        assert_eq!(overall(Measure::ReplayExact), [Some(0.6)]);
        assert_eq!(overall(Measure::ReplaySimilar), [Some(0.2)]);
        assert_eq!(overall(Measure::ReplayMissed), [Some(0.2)]);
        assert_eq!(overall(Measure::Trajectories), [Some(1.0)], "a miss counts in no other measure");
    }

    #[test]
    fn success_beyond_step_limit_is_not_counted() {
        let steps = |difficulty, steps, reward| Summary { steps, ..summary("a", "x", difficulty, reward) };
        let unjudged = Summary { outcome: Some(Outcome::JudgeError), ..steps(1, 3, 0) };
        let charts = charts_of(&[
            steps(1, 5, 1),
            steps(1, 6, 1),
            steps(1, 2, 0),
            unjudged,
            steps(9, 50, 1),
            steps(9, 51, 1),
        ]);
        let of = |line| values(&charts, Measure::SuccessInLimit, Split::Train, line);
        assert_eq!(of(Line::Easy), [Some(1.0 / 3.0)], "of trajectories with a verdict");
        assert_eq!(of(Line::Hard), [Some(0.5)]);
        assert_eq!(of(Line::Overall), [Some(0.4)]);
    }

    #[test]
    fn unchanged_screenshots_of_failures_are_left_out() {
        let failed = Summary { unchanged_screenshots: 4, ..summary("b", "x", 1, 0) };
        let charts = charts_of(&[summary("a", "x", 1, 1), failed.clone()]);
        let overall = |charts, measure| values(charts, measure, Split::Train, Line::Overall);
        assert_eq!(overall(&charts, Measure::Unchanged), [Some(6.0 / 8.0)]);
        assert_eq!(overall(&charts, Measure::UnchangedInSuccesses), [Some(0.5)]);
        assert_eq!(overall(&charts_of(&[failed]), Measure::UnchangedInSuccesses), [], "no success, no value");
    }

    #[test]
    fn memory_length_of_old_files_is_a_gap() {
        let old = Summary { memory_chars: None, ..summary("b", "x", 1, 0) };
        let charts = charts_of(&[summary("a", "x", 1, 1), old.clone()]);
        assert_eq!(values(&charts, Measure::MemoryLength, Split::Train, Line::Overall), [Some(12.0)]);
        assert_eq!(values(&charts_of(&[old]), Measure::MemoryLength, Split::Train, Line::Overall), []);
    }

    #[test]
    fn website_of_another_task_is_repeated() {
        // Two tasks on "x" and one on "y", which has two trajectories.
        let charts = charts_of(&[
            summary("a", "http://x:1", 1, 1),
            summary("b", "http://x:2/page", 5, 1),
            summary("c", "http://y", 1, 1),
            summary("c", "http://y", 1, 0),
        ]);
        let of = |line| values(&charts, Measure::WebsitesRepeated, Split::Train, line);
        assert_eq!(of(Line::Overall), [Some(2.0 / 3.0)]);
        assert_eq!(of(Line::Easy), [Some(0.5)], "the other task may have another difficulty");
        assert_eq!(of(Line::Medium), [Some(1.0)]);
    }

    #[test]
    fn repeated_tasks_are_estimated_with_one_k() {
        let charts = charts_of(&[
            summary("a", "x", 1, 1),
            summary("a", "x", 1, 0),
            summary("a", "x", 1, 0),
            summary("b", "x", 5, 0),
            summary("b", "x", 5, 1),
            summary("once", "x", 5, 0),
        ]);
        let of = |line| values(&charts, Measure::PassAtK, Split::Train, line)[0].unwrap();
        // k is that of the iteration, 2: two of the three pairs of "a" contain its success.
        for (line, expected) in [(Line::Easy, 2.0 / 3.0), (Line::Medium, 1.0), (Line::Overall, 5.0 / 6.0)] {
            assert!((of(line) - expected).abs() < 1e-12, "{line:?}: {}", of(line));
        }
        let unrepeated = charts_of(&[summary("a", "x", 1, 1), summary("b", "x", 1, 1)]);
        assert_eq!(values(&unrepeated, Measure::PassAtK, Split::Train, Line::Overall), []);
    }

    #[test]
    fn trajectories_on_x_axis_are_cumulative_by_split() {
        let mut curves = two_iterations();
        curves.add(Split::Test, 2, &IterationStats::of(&[summary("a", "x", 1, 1), summary("b", "x", 1, 1)]));
        let charts = curves.charts(ChartOptions { x: XAxis::Trajectories, ..ChartOptions::default() });
        let x = |split| {
            let series = charts.charts[0].series.iter().find(|series| series.split == split).unwrap();
            (series.iterations.clone(), series.x.clone())
        };
        assert_eq!(x(Split::Train), (vec![0, 3], vec![2, 6]));
        assert_eq!(x(Split::Test), (vec![0, 2], vec![1, 3]));
        let by_iteration = curves.charts(ChartOptions::default());
        assert_eq!(by_iteration.charts[0].series[0].x, [0, 3]);
    }

    #[test]
    fn tasks_seen_in_other_split_are_not_counted() {
        let charts = two_iterations().charts(ChartOptions::default());
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
        let charts =
            two_iterations().charts(ChartOptions { ema: Ema::new(0.5).ok(), ..ChartOptions::default() });
        let series = &charts.charts[0].series[1];
        assert_eq!((series.line, &series.values), (Line::Easy, &vec![Some(1.0), Some(0.5)]));
        assert_eq!(series.smoothed, Some(vec![Some(1.0), Some(0.75)]));
        assert_eq!(series.iterations, [0, 3]);
    }
}
