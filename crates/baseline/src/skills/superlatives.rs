//! Resolves superlatives: picks the best entry of a table or list, or the first item of a sorted list.

use super::{
    SkillContext,
    answer_format::extract_answer,
    ranking::{self, Entry, compute, sort_best_first},
};
use crate::{
    action::{Action, Decision},
    goal::{AnswerKind, Goal, Superlative},
    nlp,
    page::{self, Record, Role, tables},
};

/// Texts of items that are not available.
const UNAVAILABLE: [&str; 4] = ["out of stock", "sold out", "unavailable", "not available"];

pub(super) fn answer(context: &mut SkillContext<'_>) -> Option<Decision> {
    if context.goal.superlatives.is_empty()
        || context.memory.subject.is_some()
        || !context.goal.instructions.is_empty()
    {
        return None;
    }
    answer_from_tables(context)
        .or_else(|| answer_from_list(context))
        .or_else(|| answer_from_sorted_list(context))
}

/// Whether the page is limited to the subject of the task, by its title or URL, a filter or an earlier action.
pub(super) fn is_limited_to_subject(context: &SkillContext<'_>) -> bool {
    let Some(subject) = context.goal.subject() else { return true };
    let mut known = context.page.title_and_url_stems();
    known.extend(context.memory.filters.iter().flat_map(|set| nlp::stems(set)));
    known.extend(context.memory.tried.iter().flat_map(|tried| nlp::stems(tried)));
    subject.required.iter().all(|stem| known.contains(stem))
}

fn answer_from_tables(context: &mut SkillContext<'_>) -> Option<Decision> {
    let goal = context.goal;
    let superlative = goal.superlatives.first()?;
    for table in tables(&context.page.lines) {
        let entries = ranking::table_entries(goal, &table, superlative);
        let Some(entries) = ranking::apply_limits(goal, &table, entries).filter(|entries| entries.len() > 1)
        else {
            continue;
        };
        if let Some(answer) = compute(goal, &entries) {
            return Some(Decision::new(Action::answer(&answer), "computed from the table"));
        }
        if let Some(best) =
            sort_best_first(entries, superlative.largest).into_iter().nth(superlative.rank - 1)
        {
            let column = table.column(&goal.noun);
            let value = column.and_then(|column| best.cells.get(column)).cloned();
            return answer_or_open(context, &best, value.as_deref());
        }
    }
    None
}

fn answer_from_list(context: &mut SkillContext<'_>) -> Option<Decision> {
    let goal = context.goal;
    let superlative = goal.superlatives.first()?;
    let list = remove_unavailable(goal, page::records(context.page));
    let list = keep_subject(context, list);
    let entries = ranking::list_entries(&list, superlative);
    if entries.is_empty() || !is_limited_to_subject(context) {
        return None;
    }
    if let Some(answer) = compute(goal, &entries).filter(|_| is_complete(context)) {
        return Some(Decision::new(Action::answer(&answer), "computed from the list"));
    }
    let best = sort_best_first(entries, superlative.largest).into_iter().nth(superlative.rank - 1)?;
    context.memory.offer_guess(&best.name, 0.5);
    if goal.arithmetic.is_some() || !(is_complete(context) || is_sorted(context)) {
        return None;
    }
    answer_or_open(context, &best, None)
}

/// Answers with the name or the value of the best entry, or opens its page if the question asks for something else.
fn answer_or_open(context: &mut SkillContext<'_>, best: &Entry, value: Option<&str>) -> Option<Decision> {
    let goal = context.goal;
    let asks_for_name = goal.kind == AnswerKind::Person
        || goal.kind == AnswerKind::Anything
        || goal.kind == AnswerKind::Name && !asks_more(goal);
    if asks_for_name {
        let reason = format!("“{}” ranks first with {}", best.name, best.written);
        return Some(Decision::new(Action::answer(&best.name), reason));
    }
    let value = value.and_then(|value| extract_answer(goal, value)).or_else(|| {
        let asks_for_price = goal.kind == AnswerKind::Money && goal.superlatives.iter().any(is_about_money);
        asks_for_price.then(|| best.written.clone())
    });
    if let Some(value) = value {
        let reason = format!("it is the value of “{}”, which ranks first", best.name);
        return Some(Decision::new(Action::answer(&value), reason));
    }
    let link = context.page.find_by_name(&best.name, &[Role::Link]).cloned();
    context.memory.subject = Some(best.name.clone());
    let link = link?;
    context.try_once(
        Action::click(&link),
        format!("“{}” ranks first with {}; its page has the answer", best.name, best.written),
    )
}

/// Whether the question is about a property of the entry: `find the cheapest one. What weight …`.
fn asks_more(goal: &Goal) -> bool {
    let is_entry =
        |stem: &String| goal.superlatives.iter().any(|superlative| superlative.explicit.contains(stem));
    goal.text.contains(". ") && !goal.noun.is_empty() && !goal.noun.iter().any(is_entry)
}

fn is_about_money(superlative: &Superlative) -> bool {
    superlative.explicit.iter().chain(&superlative.implied).any(|stem| {
        nlp::stems_match(stem, &nlp::stem("price")) || nlp::stems_match(stem, &nlp::stem("salary"))
    })
}

/// Removes items that are not available, if the task asks for available ones.
fn remove_unavailable(goal: &Goal, mut list: Vec<Record>) -> Vec<Record> {
    if goal.stems.contains(&nlp::stem("stock")) || goal.stems.contains(&nlp::stem("available")) {
        list.retain(|record| !UNAVAILABLE.iter().any(|text| record.text().to_lowercase().contains(text)));
    }
    list
}

/// If some items mention the subject, keeps only these.
fn keep_subject(context: &SkillContext<'_>, list: Vec<Record>) -> Vec<Record> {
    let Some(subject) = context.goal.subject() else { return list };
    let mentions_subject = |record: &Record| {
        let stems = nlp::stems(&record.text());
        subject.required.iter().all(|stem| stems.contains(stem))
    };
    if list.iter().any(mentions_subject) { list.into_iter().filter(mentions_subject).collect() } else { list }
}

/// Whether the whole list is on this page.
fn is_complete(context: &SkillContext<'_>) -> bool {
    let has_more = context.page.lines.iter().any(|line| {
        let stems = nlp::stems(line);
        let is_page_count =
            stems.windows(4).any(|four| four[0] == "page" && four[2] == "of" && four[3] != "1");
        is_page_count || (stems.len() <= 2 && stems.first().is_some_and(|stem| stem == "next"))
    });
    !has_more
}

fn is_sorted(context: &SkillContext<'_>) -> bool {
    !context.memory.has_unsent_filters
        && context.memory.filters.iter().any(|set| set.to_lowercase().contains("sort"))
}

/// Takes the first link after the controls of a sorted list. Used without the page's text, when there are no numbers to
/// compare.
fn answer_from_sorted_list(context: &mut SkillContext<'_>) -> Option<Decision> {
    let goal = context.goal;
    if !is_sorted(context)
        || !is_limited_to_subject(context)
        || goal.arithmetic.is_some()
        || context.page.has_text
    {
        return None;
    }
    let is_control =
        |role: Role| matches!(role, Role::Select | Role::Toggle | Role::Number | Role::Date | Role::Button);
    let last = context.page.elements.iter().rposition(|element| is_control(element.role))?;
    let first =
        context.page.elements.get(last + 1..)?.iter().find(|element| element.role == Role::Link)?.clone();
    let entry = Entry {
        name: first.text,
        value: 0.0,
        written: "the chosen sort order".to_owned(),
        cells: Vec::new(),
    };
    answer_or_open(context, &entry, None)
}
