//! Shows the progress of a run: a bar on a terminal, otherwise a plain line from time to time.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::IsTerminal,
    sync::Arc,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use rollout::run::{
    event::Stage,
    state::{RunState, Totals},
};

const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
const PLAIN_LINE_INTERVAL: Duration = Duration::from_secs(15);

/// Shows the state of a run until dropped.
pub(crate) struct Progress {
    task: tokio::task::JoinHandle<()>,
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn start(state: Arc<RunState>, quiet: bool) -> Self {
        let terminal = !quiet && std::io::stderr().is_terminal();
        let bar =
            if terminal { ProgressBar::new(state.totals().tasks as u64) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:28} {pos}/{len} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let shown = bar.clone();
        let task = tokio::spawn(async move {
            let mut last_line = Instant::now();
            loop {
                tokio::time::sleep(REDRAW_INTERVAL).await;
                shown.set_position(state.done() as u64);
                shown.set_message(describe(&state));
                if !terminal && !quiet && last_line.elapsed() >= PLAIN_LINE_INTERVAL {
                    last_line = Instant::now();
                    eprintln!("{}/{} {}", state.done(), state.totals().tasks, describe(&state));
                }
            }
        });
        Self { task, bar }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.task.abort();
        self.bar.finish_and_clear();
    }
}

fn describe(state: &RunState) -> String {
    let totals = state.totals();
    let seconds = state.elapsed().as_secs_f64().max(0.001);
    let done = state.done();
    let mut text = format!("{:.1} steps/s", totals.steps as f64 / seconds);
    let judged = count(&totals, "success") + count(&totals, "failure");
    if judged > 0 {
        let share = 100.0 * count(&totals, "success") as f64 / judged as f64;
        let _ = write!(text, " · {share:.0} % success");
    }
    if done > 0 && done < totals.tasks {
        let left = seconds / done as f64 * (totals.tasks - done) as f64;
        let _ = write!(text, " · {} left", human_duration(left));
    }
    for (label, outcome) in
        [("lost", "infra_lost"), ("unjudged", "judge_error"), ("not in the archive", "replay_miss")]
    {
        let number = count(&totals, outcome);
        if number > 0 {
            let _ = write!(text, " · {number} {label}");
        }
    }
    let active = describe_stages(&state.stages());
    if active.is_empty() { text } else { format!("{text} · {active}") }
}

fn count(totals: &Totals, outcome: &str) -> usize {
    totals.outcomes.get(outcome).copied().unwrap_or(0)
}

fn describe_stages(stages: &BTreeMap<Stage, usize>) -> String {
    let busy = stages.iter().filter(|(stage, _)| !stage.is_final() && **stage != Stage::NotStarted);
    busy.map(|(stage, count)| format!("{count} {}", stage.as_str())).collect::<Vec<_>>().join(", ")
}

fn human_duration(seconds: f64) -> String {
    match seconds as u64 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
