//! Picking one out of many: the superlative, from a table, from a list, or as the first of a list that was sorted.

use super::{
    Scene, rank,
    rank::{Entry, computed, ordered},
    shape::shaped,
};
use crate::{
    action::{Action, Move},
    goal::{Extreme, Goal, Kind},
    page::{self, Record, Role, tables},
    words,
};

/// Things that cannot be had.
const GONE: [&str; 4] = ["out of stock", "sold out", "unavailable", "not available"];

pub(super) fn answer(scene: &mut Scene<'_>) -> Option<Move> {
    if scene.goal.extremes.is_empty() || scene.memory.subject.is_some() || !scene.goal.orders.is_empty() {
        return None;
    }
    from_tables(scene).or_else(|| from_list(scene)).or_else(|| first_of_sorted(scene))
}

/// What the task narrows its question to is what the page is about.
pub(super) fn is_scoped(scene: &Scene<'_>) -> bool {
    let Some(subject) = scene.goal.subject() else { return true };
    let mut known = scene.page.said_of_itself();
    known.extend(scene.memory.set.iter().flat_map(|set| words::stems(set)));
    known.extend(scene.memory.tried.iter().flat_map(|tried| words::stems(tried)));
    subject.strong.iter().all(|stem| known.contains(stem))
}

fn from_tables(scene: &mut Scene<'_>) -> Option<Move> {
    let goal = scene.goal;
    let extreme = goal.extremes.first()?;
    for table in tables(&scene.page.lines) {
        let entries = rank::rows(goal, &table, extreme);
        let Some(entries) = rank::within(goal, &table, entries).filter(|entries| entries.len() > 1) else {
            continue;
        };
        if let Some(answer) = computed(goal, &entries) {
            return Some(Move::new(Action::answer(&answer), "computed from the table"));
        }
        if let Some(best) = ordered(entries, extreme.largest).into_iter().nth(extreme.rank - 1) {
            let column = table.column(&goal.noun);
            let value = column.and_then(|column| best.cells.get(column)).cloned();
            return conclude(scene, &best, value.as_deref());
        }
    }
    None
}

fn from_list(scene: &mut Scene<'_>) -> Option<Move> {
    let goal = scene.goal;
    let extreme = goal.extremes.first()?;
    let list = available(goal, page::records(scene.page));
    let list = of_subject(scene, list);
    let entries = rank::things(&list, extreme);
    if entries.is_empty() || !is_scoped(scene) {
        return None;
    }
    if let Some(answer) = computed(goal, &entries).filter(|_| is_whole(scene)) {
        return Some(Move::new(Action::answer(&answer), "computed from the list"));
    }
    let best = ordered(entries, extreme.largest).into_iter().nth(extreme.rank - 1)?;
    scene.memory.offer(&best.name, 0.5);
    if goal.arithmetic.is_some() || !(is_whole(scene) || is_sorted(scene)) {
        return None;
    }
    conclude(scene, &best, None)
}

/// The name when a name is asked for; else its value; else its page has to be read.
fn conclude(scene: &mut Scene<'_>, best: &Entry, value: Option<&str>) -> Option<Move> {
    let goal = scene.goal;
    let asks_thing = goal.kind == Kind::Person
        || goal.kind == Kind::Anything
        || goal.kind == Kind::Name && !asks_more(goal);
    if asks_thing {
        let why = format!("“{}” comes first with {}", best.name, best.written);
        return Some(Move::new(Action::answer(&best.name), why));
    }
    let value = value.and_then(|value| shaped(goal, value)).or_else(|| {
        let of_value = goal.kind == Kind::Money && goal.extremes.iter().any(|one| about_money(one));
        of_value.then(|| best.written.clone())
    });
    if let Some(value) = value {
        let why = format!("it is the value of “{}”, which comes first", best.name);
        return Some(Move::new(Action::answer(&value), why));
    }
    let link = scene.page.named(&best.name, &[Role::Link]).cloned();
    scene.memory.subject = Some(best.name.clone());
    let link = link?;
    scene.once(
        Action::click(&link),
        format!("“{}” comes first with {}; its page will say the rest", best.name, best.written),
    )
}

/// The question goes on behind the superlative: `find the cheapest one. What weight …`.
fn asks_more(goal: &Goal) -> bool {
    let thing = |stem: &String| goal.extremes.iter().any(|one| one.said.contains(stem));
    let before_question = goal.text.contains(". ") && !goal.noun.iter().any(thing);
    before_question && !goal.noun.is_empty()
}

fn about_money(extreme: &Extreme) -> bool {
    extreme
        .said
        .iter()
        .chain(&extreme.meant)
        .any(|stem| words::alike(stem, &words::stem("price")) || words::alike(stem, &words::stem("salary")))
}

fn available(goal: &Goal, mut list: Vec<Record>) -> Vec<Record> {
    if goal.words.contains(&words::stem("stock")) || goal.words.contains(&words::stem("available")) {
        list.retain(|record| !GONE.iter().any(|gone| record.text().to_lowercase().contains(gone)));
    }
    list
}

/// When some things of the list are marked with what the task names, only they count.
fn of_subject(scene: &Scene<'_>, list: Vec<Record>) -> Vec<Record> {
    let Some(subject) = scene.goal.subject() else { return list };
    let is_of = |record: &Record| {
        let stems = words::stems(&record.text());
        subject.strong.iter().all(|stem| stems.contains(stem))
    };
    if list.iter().any(is_of) { list.into_iter().filter(is_of).collect() } else { list }
}

/// All of the list is on this page.
fn is_whole(scene: &Scene<'_>) -> bool {
    let more = scene.page.lines.iter().any(|line| {
        let stems = words::stems(line);
        let paged = stems.windows(4).any(|four| four[0] == "page" && four[2] == "of" && four[3] != "1");
        paged || (stems.len() <= 2 && stems.first().is_some_and(|stem| stem == "next"))
    });
    !more
}

fn is_sorted(scene: &Scene<'_>) -> bool {
    !scene.memory.unsent && scene.memory.set.iter().any(|set| set.to_lowercase().contains("sort"))
}

/// Without numbers to compare by, the order of a sorted list has to be believed: the first link behind the controls.
fn first_of_sorted(scene: &mut Scene<'_>) -> Option<Move> {
    let goal = scene.goal;
    if !is_sorted(scene) || !is_scoped(scene) || goal.arithmetic.is_some() || scene.page.has_text {
        return None;
    }
    let controls =
        |role: Role| matches!(role, Role::Select | Role::Tick | Role::Number | Role::Date | Role::Button);
    let last = scene.page.elements.iter().rposition(|element| controls(element.role))?;
    let first =
        scene.page.elements.get(last + 1..)?.iter().find(|element| element.role == Role::Link)?.clone();
    let entry =
        Entry { name: first.text, value: 0.0, written: "the order chosen".to_owned(), cells: Vec::new() };
    conclude(scene, &entry, None)
}
