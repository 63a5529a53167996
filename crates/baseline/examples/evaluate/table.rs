//! Compares answers with references and lays the results out.

use std::collections::BTreeMap;

use crate::play::Played;

/// The reference, in small letters and without signs, is somewhere in the answer at the borders of words.
pub(crate) fn succeeded(played: &Played) -> bool {
    let reference = played.task.definite_answer.as_deref().map(normal).unwrap_or_default();
    let answer = played.answer.as_deref().map(normal).unwrap_or_default();
    !reference.trim().is_empty() && answer.contains(&reference)
}

fn normal(text: &str) -> String {
    let mut out = String::from(" ");
    let kept: Vec<char> = text.to_lowercase().chars().filter(|sign| *sign != ',').collect();
    for (at, sign) in kept.iter().enumerate() {
        let in_number = *sign == '.'
            && at > 0
            && kept[at - 1].is_ascii_digit()
            && kept.get(at + 1).is_some_and(char::is_ascii_digit);
        if sign.is_alphanumeric() || in_number {
            out.push(*sign);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}

pub(crate) fn line(played: &Played) -> String {
    let sign = if succeeded(played) { "yes" } else { "no " };
    let given =
        played.answer.clone().or_else(|| played.problem.clone()).unwrap_or_else(|| "(no answer)".to_owned());
    format!(
        "{sign} {} {:<34} {:>2} steps  {:.60} | wanted {}",
        played.task.difficulty,
        played.task.task_id,
        played.steps,
        given,
        played.task.definite_answer.as_deref().unwrap_or("?"),
    )
}

pub(crate) fn summary(all: &[Played]) -> String {
    let mut by_difficulty: BTreeMap<i64, (usize, usize)> = BTreeMap::new();
    for played in all {
        let (won, count) = by_difficulty.entry(played.task.difficulty).or_default();
        *won += usize::from(succeeded(played));
        *count += 1;
    }
    let mut text = String::from("\ndifficulty  succeeded\n");
    for (difficulty, (won, count)) in &by_difficulty {
        text.push_str(&format!("{difficulty:>10}  {won} of {count}\n"));
    }
    let won = all.iter().filter(|played| succeeded(played)).count();
    let share = 100.0 * won as f64 / all.len().max(1) as f64;
    text.push_str(&format!("{:>10}  {won} of {} ({share:.0} %)\n", "all", all.len()));
    text
}
