//! The report as a table for people.

use std::fmt::{self, Display, Formatter};

use super::{Metrics, MetricsReport, Scope};

impl Display for MetricsReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let overall = &self.breakdown.overall;
        match self.scope {
            Scope::Iteration(iteration) => write!(out, "{}, iteration {iteration}", self.split)?,
            Scope::Last(wanted) => {
                write!(out, "{}, last {} of {wanted} asked for", self.split, overall.total_trajectories)?;
            }
        }
        writeln!(out)?;
        let groups = self.breakdown.by_difficulty.iter().chain(&self.breakdown.by_domain);
        let width = groups.map(|group| group.name.chars().count()).max().unwrap_or(0).clamp(8, 32);
        writeln!(
            out,
            "{:width$} {:>7} {:>8} {:>8} {:>8} {:>7} {:>11} {:>8}",
            "", "total", "success", "crashed", "blocked", "steps", "chars/reply", "go back"
        )?;
        for group in &self.breakdown.by_difficulty {
            row(out, width, &group.name, &group.metrics)?;
        }
        for group in &self.breakdown.by_domain {
            row(out, width, &group.name, &group.metrics)?;
        }
        row(out, width, "overall", overall)?;
        for (count, what) in [
            (overall.judge_errors, "not judged (no judge, or none that answered)"),
            (overall.infra_lost, "lost to the infrastructure"),
            (overall.cancelled, "cancelled"),
        ] {
            if count > 0 {
                writeln!(out, "{count} {what}")?;
            }
        }
        Ok(())
    }
}

fn row(out: &mut Formatter<'_>, width: usize, name: &str, metrics: &Metrics) -> fmt::Result {
    let percent = |rate: f64| format!("{:.1} %", rate * 100.0);
    let name: String = name.chars().take(width).collect();
    writeln!(
        out,
        "{name:width$} {:>7} {:>8} {:>8} {:>8} {:>7.1} {:>11.0} {:>8}",
        metrics.total_trajectories,
        // Without a judgement there is nothing to say about success.
        if metrics.scored > 0 { percent(metrics.success_rate) } else { "–".to_owned() },
        percent(metrics.crashed_rate),
        percent(metrics.blocked_rate),
        metrics.avg_steps,
        metrics.avg_chars_per_response,
        percent(metrics.goback_rate)
    )
}
