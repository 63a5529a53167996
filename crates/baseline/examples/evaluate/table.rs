//! Compares answers with reference answers and formats the results.

use std::{collections::BTreeMap, fmt::Write};

use crate::play::TaskResult;

/// Whether the answer contains the reference answer as whole words, ignoring case and punctuation.
pub(crate) fn succeeded(result: &TaskResult) -> bool {
    let reference = result.task.definite_answer.as_deref().map(normalize).unwrap_or_default();
    let answer = result.answer.as_deref().map(normalize).unwrap_or_default();
    !reference.trim().is_empty() && answer.contains(&reference)
}

fn normalize(text: &str) -> String {
    let mut out = String::from(" ");
    let kept: Vec<char> = text.to_lowercase().chars().filter(|c| *c != ',').collect();
    for (index, c) in kept.iter().enumerate() {
        let in_number = *c == '.'
            && index > 0
            && kept[index - 1].is_ascii_digit()
            && kept.get(index + 1).is_some_and(char::is_ascii_digit);
        if c.is_alphanumeric() || in_number {
            out.push(*c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}

pub(crate) fn line(result: &TaskResult) -> String {
    let outcome = if succeeded(result) { "yes" } else { "no " };
    let answer =
        result.answer.clone().or_else(|| result.error.clone()).unwrap_or_else(|| "(no answer)".to_owned());
    format!(
        "{outcome} {} {:<34} {:>2} steps  {:.60} | expected {}",
        result.task.difficulty,
        result.task.task_id,
        result.steps,
        answer,
        result.task.definite_answer.as_deref().unwrap_or("?"),
    )
}

pub(crate) fn summary(results: &[TaskResult]) -> String {
    let mut by_difficulty: BTreeMap<i64, (usize, usize)> = BTreeMap::new();
    for result in results {
        let (won, count) = by_difficulty.entry(result.task.difficulty).or_default();
        *won += usize::from(succeeded(result));
        *count += 1;
    }
    let mut text = String::from("\ndifficulty  succeeded\n");
    for (difficulty, (won, count)) in &by_difficulty {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{difficulty:>10}  {won} of {count}");
    }
    let won = results.iter().filter(|result| succeeded(result)).count();
    let share = 100.0 * won as f64 / results.len().max(1) as f64;
    let _ = writeln!(text, "{:>10}  {won} of {} ({share:.0} %)", "all", results.len());
    text
}
