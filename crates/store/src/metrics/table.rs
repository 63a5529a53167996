//! Prints a metrics report as a table.

use std::fmt::{self, Display, Formatter};

use super::{Coverage, CoverageGroup, Metrics, MetricsReport, PassAtK, Scope, rate};

impl Display for MetricsReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let overall = &self.breakdown.overall;
        match self.scope {
            Scope::Iteration(iteration) => write!(out, "{}, iteration {iteration}", self.split)?,
            Scope::Last(window_size) => {
                write!(
                    out,
                    "{}, last {} trajectories ({window_size} requested)",
                    self.split, overall.total_trajectories
                )?;
            }
        }
        writeln!(out)?;
        let groups = || self.breakdown.by_difficulty.iter().chain(&self.breakdown.by_domain);
        let width = groups().map(|group| group.name.chars().count()).max().unwrap_or(0).clamp(8, 32);
        writeln!(
            out,
            "{:width$} {:>7} {:>8} {:>8} {:>8} {:>7} {:>11} {:>8}",
            "", "total", "success", "crashed", "blocked", "steps", "chars/reply", "go back"
        )?;
        for group in groups() {
            write_row(out, width, &group.name, &group.metrics)?;
        }
        write_row(out, width, "overall", overall)?;
        if let Some(PassAtK { k, tasks, mean, rate }) = self.pass_at_k {
            let tasks =
                if tasks == 1 { "1 repeated task".to_owned() } else { format!("{tasks} repeated tasks") };
            writeln!(out, "pass@1 {:.1} %, pass@{k} {:.1} % ({tasks})", mean * 100.0, rate * 100.0)?;
        }
        for (count, label) in [
            (overall.judge_errors, "not judged (no judge configured, or it gave no verdict)"),
            (overall.infra_lost, "lost to infrastructure errors"),
            (overall.cancelled, "cancelled"),
            (overall.replay_misses, "ended because the replayed archive lacks a request (replay_miss)"),
        ] {
            if count > 0 {
                writeln!(out, "{count} {label}")?;
            }
        }
        self.breakdown.coverage.as_ref().map_or(Ok(()), |coverage| write_coverage(out, coverage))
    }
}

fn write_coverage(out: &mut Formatter<'_>, coverage: &Coverage) -> fmt::Result {
    let groups = || coverage.by_site.iter().chain([&coverage.overall]);
    let width = groups().map(|group| group.name.chars().count()).max().unwrap_or(0).clamp(8, 32);
    writeln!(
        out,
        "{:width$} {:>8} {:>8} {:>10} {:>8} {:>8}",
        "replay", "requests", "exact", "normalised", "scored", "missed"
    )?;
    for CoverageGroup { name, matches, .. } in groups() {
        let total = matches.total();
        let share = |count: u64| format!("{:.1} %", rate(count, total) * 100.0);
        let name: String = name.chars().take(width).collect();
        writeln!(
            out,
            "{name:width$} {total:>8} {:>8} {:>10} {:>8} {:>8}",
            share(matches.exact),
            share(matches.normalised),
            share(matches.scored),
            share(matches.missed)
        )?;
    }
    Ok(())
}

fn write_row(out: &mut Formatter<'_>, width: usize, name: &str, metrics: &Metrics) -> fmt::Result {
    let percent = |rate: f64| format!("{:.1} %", rate * 100.0);
    let name: String = name.chars().take(width).collect();
    writeln!(
        out,
        "{name:width$} {:>7} {:>8} {:>8} {:>8} {:>7.1} {:>11.0} {:>8}",
        metrics.total_trajectories,
        // Without judged trajectories there is no success rate.
        if metrics.scored > 0 { percent(metrics.success_rate) } else { "–".to_owned() },
        percent(metrics.crashed_rate),
        percent(metrics.blocked_rate),
        metrics.avg_steps,
        metrics.avg_chars_per_response,
        percent(metrics.goback_rate)
    )
}
