//! Reading a fact off the page of the thing the question is about.

use super::{Scene, shape::shaped};
use crate::{
    action::{Action, Move},
    goal::{Goal, Kind, Subject},
    page::{self, Element, Page, Pair, Table, tables},
    values, words,
};

/// What was found, and how far it can be trusted: from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) answer: String,
    pub(super) trust: f64,
    pub(super) how: String,
}

/// From here on an answer is given at once.
const SURE: f64 = 0.7;

pub(super) fn answer(scene: &mut Scene<'_>) -> Option<Move> {
    let found = look_up(scene)?;
    (found.trust >= SURE).then(|| Move::new(Action::answer(&found.answer), found.how))
}

/// Whatever the page offers is kept for the time when nothing better turns up.
pub(super) fn keep_guess(scene: &mut Scene<'_>) {
    if let Some(found) = look_up(scene) {
        scene.memory.offer(&found.answer, found.trust.min(0.9));
    }
}

fn look_up(scene: &Scene<'_>) -> Option<Found> {
    let goal = scene.goal;
    // A superlative still to be resolved, or a sum, is not on the page of any one thing.
    let open = scene.memory.subject.is_none() && !goal.extremes.is_empty();
    if open || goal.arithmetic.is_some() || !goal.orders.is_empty() {
        return None;
    }
    let subject = scene.subject()?;
    let about = scene.is_about(&subject);
    let candidates = [
        cell_of_a_row(scene, &subject, about),
        labelled(scene, about),
        price_below_heading(goal, scene.page, about),
        record_of(goal, scene.page, &subject),
        byline(scene, about),
        sentence(scene, &subject, about),
    ];
    candidates.into_iter().flatten().max_by(|one, other| one.trust.total_cmp(&other.trust))
}

/// A table has a row for what the task names, or for a number it gives, and a column for what it asks.
fn cell_of_a_row(scene: &Scene<'_>, subject: &Subject, about: bool) -> Option<Found> {
    let (goal, page) = (scene.goal, scene.page);
    let numbers = values::years(&goal.text);
    let asked: Vec<String> = goal.noun.iter().cloned().chain(scene.asked()).collect();
    for table in tables(&page.lines) {
        let Some(column) = table.column(&asked) else { continue };
        let fits = |row: &&Vec<String>| {
            row.iter().enumerate().any(|(place, cell)| {
                let named = place != column && words::content(cell) == subject.stems;
                named || (about && place != column && numbers.contains(cell))
            })
        };
        if let Some(row) = table.rows.iter().find(fits)
            && let Some(answer) = shaped(goal, &with_unit(&table, column, &row[column]))
        {
            let how = format!("the table has it in the row “{}” under “{}”", row[0], table.head[column]);
            return Some(Found { answer, trust: 0.95, how });
        }
    }
    None
}

/// Measures are told with the unit that stands in the head.
fn with_unit(table: &Table, column: usize, cell: &str) -> String {
    table.unit(column).map_or_else(|| cell.to_owned(), |unit| format!("{cell} {unit}"))
}

/// How well a label is what the question asks for: the share of its words that the question has, more for the noun.
fn label_fit(pair: &Pair, noun: &[String], wanted: &[String]) -> f64 {
    let words: Vec<&String> = pair.stems.iter().filter(|stem| !words::is_stop(stem)).collect();
    if words.is_empty() {
        return 0.0;
    }
    let share = |asked: &[String]| {
        let hits = words.iter().filter(|word| asked.iter().any(|stem| words::alike(stem, word))).count();
        hits as f64 / words.len() as f64
    };
    // All words of the noun should be there too: `life` alone is not `battery life`.
    let whole = words::coverage(noun, &pair.stems);
    (share(noun) * (0.7 + 0.3 * whole)).max(share(wanted) * 0.9)
}

fn labelled(scene: &Scene<'_>, about: bool) -> Option<Found> {
    let goal = scene.goal;
    let left = scene.asked();
    let best = page::pairs(scene.page)
        .into_iter()
        .filter_map(|pair| {
            let fit = label_fit(&pair, &goal.noun, &left);
            let answer = shaped(goal, &pair.value).filter(|_| fit > 0.5)?;
            let sure = if pair.sure { 1.0 } else { 0.85 };
            Some((fit * sure, answer, pair.label))
        })
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    let trust = if about { best.0 } else { best.0 * 0.4 };
    Some(Found { answer: best.1, trust, how: format!("the page says it beside “{}”", best.2) })
}

/// On the page of one thing, the first price below its name is its price.
fn price_below_heading(goal: &Goal, page: &Page, about: bool) -> Option<Found> {
    if goal.kind != Kind::Money || !about {
        return None;
    }
    let heading = page.heading();
    let from = page.lines.iter().rposition(|line| line == heading)?;
    let answer = page.lines[from..].iter().take(12).find_map(|line| shaped(goal, line))?;
    Some(Found { answer, trust: 0.8, how: "it is the first price below the name".to_owned() })
}

/// In a list, the lines that belong to the thing.
fn record_of(goal: &Goal, page: &Page, subject: &Subject) -> Option<Found> {
    if !matches!(goal.kind, Kind::Money | Kind::Date) {
        return None;
    }
    let all = page::records(page);
    let record = all.iter().find(|record| words::content(&record.name) == subject.stems)?;
    let answer = record.lines.iter().find_map(|line| shaped(goal, line))?;
    Some(Found { answer, trust: 0.75, how: format!("the list says it under “{}”", record.name) })
}

/// Right below the name of a thing stands who made, offers or wrote it.
fn byline(scene: &Scene<'_>, about: bool) -> Option<Found> {
    if !matches!(scene.goal.kind, Kind::Name | Kind::Person) || !about {
        return None;
    }
    let link = below_heading(scene.page)?;
    let how = format!("it stands right below the name “{}”", scene.page.heading());
    Some(Found { answer: link.text.clone(), trust: 0.7, how })
}

/// The link in the line below the heading.
pub(super) fn below_heading(page: &Page) -> Option<&Element> {
    let heading = page.heading();
    let at = page.lines.iter().rposition(|line| line == heading)?;
    let line = page.lines.get(at + 1)?;
    page.links().find(|link| !link.text.is_empty() && line.contains(&link.text) && link.text != heading)
}

/// A sentence that shares most of its words with the question and holds an answer of the right kind.
fn sentence(scene: &Scene<'_>, subject: &Subject, about: bool) -> Option<Found> {
    let goal = scene.goal;
    if matches!(goal.kind, Kind::Name | Kind::Person | Kind::Said | Kind::Anything | Kind::YesNo) {
        return None;
    }
    let wanted = scene.asked();
    let sentences = scene.page.lines.iter().flat_map(|line| line.split(". "));
    let best = sentences
        .filter_map(|sentence| {
            let stems = words::content(sentence);
            let asked =
                wanted.iter().filter(|stem| stems.iter().any(|word| words::alike(stem, word))).count();
            let named = about || subject.strong.iter().all(|stem| stems.contains(stem));
            let answer = shaped(goal, sentence).filter(|_| asked > 0 && named)?;
            Some((asked as f64 / wanted.len().max(1) as f64, answer, sentence))
        })
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    let start: String = best.2.chars().take(60).collect();
    Some(Found {
        answer: best.1, trust: 0.35 + 0.4 * best.0, how: format!("a sentence says it: “{start}…”")
    })
}
