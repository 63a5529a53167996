//! Reads a fact from the page of the subject.

use super::{SkillContext, answer_format::extract_answer};
use crate::{
    action::{Action, Decision},
    goal::{AnswerKind, Goal, Subject},
    nlp,
    page::{self, Element, Page, Pair, Table, tables},
    values,
};

/// A possible answer.
#[derive(Clone, Debug, PartialEq)]
struct Candidate {
    answer: String,
    /// From 0 to 1.
    confidence: f64,
    reason: String,
}

/// Answers with at least this confidence are given immediately.
const MIN_CONFIDENCE: f64 = 0.7;

pub(super) fn answer(context: &mut SkillContext<'_>) -> Option<Decision> {
    let found = look_up(context)?;
    (found.confidence >= MIN_CONFIDENCE).then(|| Decision::new(Action::answer(&found.answer), found.reason))
}

/// Keeps the best candidate of the page as a guess.
pub(super) fn keep_guess(context: &mut SkillContext<'_>) {
    if let Some(found) = look_up(context) {
        context.memory.offer_guess(&found.answer, found.confidence.min(0.9));
    }
}

fn look_up(context: &SkillContext<'_>) -> Option<Candidate> {
    let goal = context.goal;
    // The page of one thing answers neither a superlative nor a sum.
    let has_open_superlative = context.memory.subject.is_none() && !goal.superlatives.is_empty();
    if has_open_superlative || goal.arithmetic.is_some() || !goal.instructions.is_empty() {
        return None;
    }
    let subject = context.subject()?;
    let is_about = context.is_about(&subject);
    let candidates = [
        table_cell(context, &subject, is_about),
        labelled_value(context, is_about),
        price_below_heading(goal, context.page, is_about),
        list_item(goal, context.page, &subject),
        byline(context, is_about),
        sentence(context, &subject, is_about),
    ];
    candidates.into_iter().flatten().max_by(|a, b| a.confidence.total_cmp(&b.confidence))
}

/// Looks in tables for the row of the subject, or of a year in the task, and the column that is asked for.
fn table_cell(context: &SkillContext<'_>, subject: &Subject, is_about: bool) -> Option<Candidate> {
    let (goal, page) = (context.goal, context.page);
    let years = values::years(&goal.text);
    let wanted: Vec<String> = goal.noun.iter().cloned().chain(context.open_stems()).collect();
    for table in tables(&page.lines) {
        let Some(column) = table.column(&wanted) else { continue };
        let matches = |row: &&Vec<String>| {
            row.iter().enumerate().any(|(index, cell)| {
                let is_subject = index != column && nlp::content_stems(cell) == subject.stems;
                is_subject || (is_about && index != column && years.contains(cell))
            })
        };
        if let Some(row) = table.rows.iter().find(matches)
            && let Some(answer) = extract_answer(goal, &with_unit(&table, column, &row[column]))
        {
            let reason = format!("the table shows it in the row “{}” under “{}”", row[0], table.head[column]);
            return Some(Candidate { answer, confidence: 0.95, reason });
        }
    }
    None
}

/// Appends the unit of the column to the cell.
fn with_unit(table: &Table, column: usize, cell: &str) -> String {
    table.unit(column).map_or_else(|| cell.to_owned(), |unit| format!("{cell} {unit}"))
}

/// Rates how well a label matches the question: the share of its words that the question contains. The noun of the
/// question counts more than its other words.
fn rate_label(pair: &Pair, noun: &[String], wanted: &[String]) -> f64 {
    let words: Vec<&String> = pair.stems.iter().filter(|stem| !nlp::is_stop_word(stem)).collect();
    if words.is_empty() {
        return 0.0;
    }
    let share = |asked: &[String]| {
        let hits = words.iter().filter(|word| asked.iter().any(|stem| nlp::stems_match(stem, word))).count();
        hits as f64 / words.len() as f64
    };
    // The label should contain the whole noun: `life` alone is not `battery life`.
    let noun_coverage = nlp::coverage(noun, &pair.stems);
    (share(noun) * (0.7 + 0.3 * noun_coverage)).max(share(wanted) * 0.9)
}

/// Looks for a label that matches the question.
fn labelled_value(context: &SkillContext<'_>, is_about: bool) -> Option<Candidate> {
    let goal = context.goal;
    let open_stems = context.open_stems();
    let best = page::pairs(context.page)
        .into_iter()
        .filter_map(|pair| {
            let rating = rate_label(&pair, &goal.noun, &open_stems);
            let answer = extract_answer(goal, &pair.value).filter(|_| rating > 0.5)?;
            let certainty = if pair.same_line { 1.0 } else { 0.85 };
            Some((rating * certainty, answer, pair.label))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let confidence = if is_about { best.0 } else { best.0 * 0.4 };
    Some(Candidate {
        answer: best.1, confidence, reason: format!("the page shows it beside “{}”", best.2)
    })
}

/// Takes the first price below the heading of the subject's page.
fn price_below_heading(goal: &Goal, page: &Page, is_about: bool) -> Option<Candidate> {
    if goal.kind != AnswerKind::Money || !is_about {
        return None;
    }
    let heading = page.heading();
    let from = page.lines.iter().rposition(|line| line == heading)?;
    let answer = page.lines[from..].iter().take(12).find_map(|line| extract_answer(goal, line))?;
    Some(Candidate { answer, confidence: 0.8, reason: "it is the first price below the heading".to_owned() })
}

/// Looks in a list for the item of the subject.
fn list_item(goal: &Goal, page: &Page, subject: &Subject) -> Option<Candidate> {
    if !matches!(goal.kind, AnswerKind::Money | AnswerKind::Date) {
        return None;
    }
    let all = page::records(page);
    let record = all.iter().find(|record| nlp::content_stems(&record.name) == subject.stems)?;
    let answer = record.lines.iter().find_map(|line| extract_answer(goal, line))?;
    Some(Candidate {
        answer, confidence: 0.75, reason: format!("the list shows it under “{}”", record.name)
    })
}

/// Takes the link below the heading, which usually names the maker, provider or author.
fn byline(context: &SkillContext<'_>, is_about: bool) -> Option<Candidate> {
    if !matches!(context.goal.kind, AnswerKind::Name | AnswerKind::Person) || !is_about {
        return None;
    }
    let link = link_below_heading(context.page)?;
    let reason = format!("it is directly below the heading “{}”", context.page.heading());
    Some(Candidate { answer: link.text.clone(), confidence: 0.7, reason })
}

/// Returns the link in the line below the heading.
pub(super) fn link_below_heading(page: &Page) -> Option<&Element> {
    let heading = page.heading();
    let index = page.lines.iter().rposition(|line| line == heading)?;
    let line = page.lines.get(index + 1)?;
    page.links().find(|link| !link.text.is_empty() && line.contains(&link.text) && link.text != heading)
}

/// Looks for the sentence that shares the most words with the question and contains an answer of the right kind.
fn sentence(context: &SkillContext<'_>, subject: &Subject, is_about: bool) -> Option<Candidate> {
    let goal = context.goal;
    if matches!(
        goal.kind,
        AnswerKind::Name
            | AnswerKind::Person
            | AnswerKind::PageText
            | AnswerKind::Anything
            | AnswerKind::YesNo
    ) {
        return None;
    }
    let wanted = context.open_stems();
    let sentences = context.page.lines.iter().flat_map(|line| line.split(". "));
    let best = sentences
        .filter_map(|sentence| {
            let stems = nlp::content_stems(sentence);
            let shared =
                wanted.iter().filter(|stem| stems.iter().any(|word| nlp::stems_match(stem, word))).count();
            let is_named = is_about || subject.required.iter().all(|stem| stems.contains(stem));
            let answer = extract_answer(goal, sentence).filter(|_| shared > 0 && is_named)?;
            Some((shared as f64 / wanted.len().max(1) as f64, answer, sentence))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let start: String = best.2.chars().take(60).collect();
    Some(Candidate {
        answer: best.1,
        confidence: 0.35 + 0.4 * best.0,
        reason: format!("a sentence contains it: “{start}…”"),
    })
}
