//! Shows a trajectory as text.

use std::fmt::Write;

use proto::network::{MatchCounts, NetworkSummary};
use proto::trajectory::{Evaluation, Step, Trajectory};

use net::escape::escape_terminal;

use super::terminal_text::{indent, single_line};
use crate::iteration::{self, IterationFile};
use crate::layout::{SavePath, Split};
use crate::pt::PtError;
use crate::summary::Summary;

#[derive(Clone, Copy, Debug, Default)]
pub struct ShowOptions {
    /// Include the prompts.
    pub prompts: bool,
    /// Include the accessibility trees.
    pub ac_trees: bool,
}

/// Finds a trajectory by its index. Returns `None` if the iteration has no trajectory with that index.
pub fn find(
    save_path: &SavePath,
    split: Split,
    iteration: u64,
    trajectory_index: i64,
) -> Result<Option<Trajectory>, PtError> {
    let directory = save_path.split_directory(split);
    let files = iteration::files_of(save_path, split, iteration)
        .map_err(|error| PtError::io("list", &directory, error))?;
    for found in files {
        let file = IterationFile::open_found(&found)?;
        let position =
            file.summaries().iter().position(|summary| summary.trajectory_index == trajectory_index);
        if let Some(position) = position {
            return file.read(position).map(Some);
        }
    }
    Ok(None)
}

pub fn show(trajectory: &Trajectory, options: ShowOptions) -> String {
    let Trajectory { task, steps, metadata } = trajectory;
    let summary = Summary::of(trajectory);
    let mut out = String::new();
    let _ = writeln!(out, "{}", escape_terminal(&task.task_name));
    let _ = writeln!(
        out,
        "index {} · {} · {} / {} · difficulty {} · {} of {} steps",
        task.trajectory_index,
        escape_terminal(&task.website),
        escape_terminal(&task.domain),
        escape_terminal(&task.subdomain),
        task.difficulty,
        steps.len(),
        task.max_steps
    );
    let ending = metadata.extra.get("ending").and_then(serde_json::Value::as_str).unwrap_or_default();
    let ending = if ending.is_empty() { String::new() } else { format!(" · {}", escape_terminal(ending)) };
    let _ = writeln!(out, "{} · reward {}{ending}", summary.outcome_or_inferred().as_str(), summary.reward);
    if let Some(step) = metadata.forked_at_step {
        let _ =
            writeln!(out, "  forked at step {step}: the steps before are those of the group's first attempt");
    }
    if let Some(network) = &metadata.network {
        show_network(&mut out, network);
    }
    for item in &task.evaluator_reference {
        let _ = writeln!(out, "  rubric ({}): {}", item.difficulty, escape_terminal(&item.description));
    }
    if let Some(answer) = &task.reference_answer {
        let _ = writeln!(out, "  reference answer: {}", escape_terminal(answer));
    }
    for (number, step) in (0_i64..).zip(steps) {
        let is_keypoint = metadata.keypoint_step_ids.contains(&number);
        show_step(&mut out, number, step, is_keypoint, options);
    }
    out
}

fn show_network(out: &mut String, network: &NetworkSummary) {
    let MatchCounts { exact, normalised, scored, missed } = network.matches;
    if network.matches.total() > 0 {
        let _ = writeln!(
            out,
            "  replay: {exact} exact, {normalised} normalised, {scored} scored, {missed} missed"
        );
    }
    if network.recorded > 0 {
        let _ = writeln!(out, "  recorded: {} requests", network.recorded);
    }
    for miss in &network.misses {
        let _ = writeln!(out, "  missed: {}", escape_terminal(&format!("{} {}", miss.method, miss.url)));
    }
}

fn show_step(out: &mut String, number: i64, step: &Step, is_keypoint: bool, options: ShowOptions) {
    let Step { observation, action, response, reward, .. } = step;
    let _ = writeln!(
        out,
        "\nstep {number}{}  {}",
        if is_keypoint { " (key)" } else { "" },
        single_line(&observation.url, 120)
    );
    let _ = writeln!(out, "  page: {}", single_line(&observation.title, 120));
    let _ = writeln!(out, "  screenshot: {}", single_line(&observation.image_path, 160));
    if step.same_as_next_screenshot == Some(true) {
        let _ = writeln!(out, "  the page did not change");
    }
    if let Some(tree) = observation.ac_tree.as_ref().filter(|_| options.ac_trees) {
        let _ = writeln!(out, "  elements:\n{}", indent(tree, 4));
    }
    if options.prompts {
        let _ = writeln!(out, "  prompt:\n{}", indent(&response.raw_prompt, 4));
    }
    let _ = writeln!(out, "  reply:\n{}", indent(&response.raw_response, 4));
    match action {
        Some(action) => {
            let arguments = serde_json::Value::Object(action.arguments.clone());
            let _ = writeln!(
                out,
                "  action: {} {}",
                escape_terminal(&action.key),
                escape_terminal(&arguments.to_string())
            );
        }
        None => out.push_str("  action: none\n"),
    }
    if reward.is_blocked {
        out.push_str("  blocked\n");
    }
    if let Some(judgment) = &reward.submission_judgment {
        let _ = writeln!(out, "  judged as evidence: {}", single_line(judgment, 200));
    }
    let evaluations = match &reward.evaluation {
        Evaluation::Text(text) => std::slice::from_ref(text),
        Evaluation::Texts(texts) => texts.as_slice(),
    };
    for evaluation in evaluations.iter().filter(|text| !text.is_empty()) {
        let _ = writeln!(out, "  judge:\n{}", indent(evaluation, 4));
    }
}
