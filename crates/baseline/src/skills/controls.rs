//! Narrowing and sorting a list with the controls the page offers.

use super::{Scene, options, submit};
use crate::{
    action::{Action, Move},
    goal::{Bound, Limit},
    page::{Element, Role},
    words,
};

/// Words on a control that say nothing about what it does.
const FILLING: [&str; 4] = ["only", "show", "any", "all"];
const UPPER: [&str; 7] = ["to", "max", "maximum", "most", "under", "below", "before"];
const LOWER: [&str; 8] = ["from", "min", "minimum", "least", "over", "above", "after", "since"];
const MOST_SCROLLS: usize = 2;

pub(super) fn next(scene: &mut Scene<'_>) -> Option<Move> {
    if !scene.goal.wants_list() || scene.memory.subject.is_some() {
        return None;
    }
    tick(scene)
        .or_else(|| open_list(scene))
        .or_else(|| choose(scene))
        .or_else(|| limit(scene))
        .or_else(|| find_sorting(scene))
        .or_else(|| if scene.memory.unsent { submit::send(scene) } else { None })
}

fn remember(scene: &mut Scene<'_>, what: String) {
    scene.memory.set.push(what);
    scene.memory.unsent = true;
}

fn is_set(scene: &Scene<'_>, what: &str) -> bool {
    scene.memory.set.iter().any(|set| set == what)
}

/// A box whose words are all in the task, unless the address says that it is ticked.
fn tick(scene: &mut Scene<'_>) -> Option<Move> {
    let asked = scene.page.query_stems();
    let wanted = |element: &&Element| {
        let stems: Vec<String> = words::content(&element.text)
            .into_iter()
            .filter(|stem| !FILLING.contains(&stem.as_str()))
            .collect();
        !stems.is_empty()
            && stems.iter().all(|stem| scene.goal.words.contains(stem))
            && !stems.iter().all(|stem| asked.contains(stem))
            && !is_set(scene, &format!("[x] {}", element.text))
    };
    let found = scene.page.of(Role::Tick).find(wanted)?.clone();
    remember(scene, format!("[x] {}", found.text));
    Some(Move::new(Action::click(&found), format!("the task says “{}”", found.text)))
}

/// The option to take in a list: the order that helps, or what the task names.
fn option_for(scene: &Scene<'_>, select: &Element) -> Option<String> {
    let all = options::of(scene.page, select);
    let option = if options::is_sort(select, &all) {
        options::sorting(scene.goal, &all)
    } else {
        options::named(scene.goal, &all)
    }?;
    let asked = scene.page.query_stems();
    let stems = words::content(&option);
    let there = !stems.is_empty() && stems.iter().all(|stem| asked.contains(stem));
    (!there && !is_set(scene, &format!("{}={option}", select.text))).then_some(option)
}

fn choose(scene: &mut Scene<'_>) -> Option<Move> {
    let found =
        scene.page.of(Role::Select).find_map(|select| Some((select.clone(), option_for(scene, select)?)));
    let (select, option) = found?;
    let open = options::open_options(scene.page, &select)
        .into_iter()
        .find(|element| element.text == option)
        .cloned();
    remember(scene, format!("{}={option}", select.text));
    let why = format!("“{option}” in the list “{}” is what the task needs", select.text);
    // Typing into a list chooses the option that reads so.
    let action = open.map_or_else(|| Action::fill(&select, &option), |element| Action::click(&element));
    Some(Move::new(action, why))
}

/// Without the page's text the options show only once the list is open.
fn open_list(scene: &mut Scene<'_>) -> Option<Move> {
    if scene.page.has_text {
        return None;
    }
    let sorts = scene.goal.extremes.len() == 1;
    let hopeful = |select: &&Element| {
        let mentioned = select.stems.iter().any(|stem| scene.goal.words.contains(stem));
        let unopened = options::of(scene.page, select).is_empty();
        unopened
            && (mentioned || sorts && options::is_sort(select, &[]) || scene.goal.counts())
            && !scene.memory.has_tried(&Action::click(select).sentence())
            && !scene.memory.set.iter().any(|set| set.starts_with(&format!("{}=", select.text)))
    };
    let found = scene.page.of(Role::Select).find(hopeful)?.clone();
    scene.once(Action::click(&found), "its options may be what the task needs")
}

/// A field for a number or a date that a limit of the task goes into. Typing sends the form.
fn limit(scene: &mut Scene<'_>) -> Option<Move> {
    let found = scene.goal.limits.iter().find_map(|limit| {
        let fields = scene.page.elements.iter().filter(|element| element.is_field());
        let best =
            fields.filter_map(|field| Some((fit(field, limit)?, field))).max_by_key(|(fit, _)| *fit)?.1;
        let value = match &limit.bound {
            Bound::Number { value, .. } => value.to_string(),
            Bound::Day(date) => date.iso(),
        };
        let what = format!("{}={value}", best.text);
        (!is_set(scene, &what)).then(|| (best.clone(), value, what))
    });
    let (field, value, what) = found?;
    remember(scene, what);
    scene.memory.unsent = false;
    let why = format!("the task sets the limit {value} and “{}” takes it", field.text);
    Some(Move::new(Action::fill(&field, &value), why))
}

/// Whether a field is meant for such a limit: its kind, its direction, and the words near the limit.
fn fit(field: &Element, limit: &Limit) -> Option<usize> {
    let has = |words: &[&str]| words.iter().any(|word| field.stems.iter().any(|stem| stem == word));
    let kind = match &limit.bound {
        Bound::Number { .. } => field.role == Role::Number,
        Bound::Day(_) => field.role == Role::Date,
    };
    let direction = if limit.upper { has(&UPPER) && !has(&LOWER) } else { has(&LOWER) };
    let money = field.text.contains(['$', '€', '£']);
    let near =
        limit.near.iter().filter(|word| field.stems.iter().any(|stem| words::alike(stem, word))).count();
    let related = near > 0 || (money && matches!(limit.bound, Bound::Number { money: true, .. }));
    (kind && direction && related).then_some(near + usize::from(money))
}

/// The text shows that the list can be sorted, but the control is out of sight.
fn find_sorting(scene: &mut Scene<'_>) -> Option<Move> {
    let written = scene.page.lines.iter().any(|line| {
        let lower = line.to_lowercase();
        line.split_whitespace().count() <= 3 && (lower.starts_with("sort") || lower.starts_with("order by"))
    });
    let seen =
        scene.page.of(Role::Select).any(|select| options::is_sort(select, &options::of(scene.page, select)));
    let sorted = scene.memory.set.iter().any(|set| set.to_lowercase().contains("sort"));
    // Without the text, a page with several filters is likely to have this one too.
    let filters = scene
        .page
        .elements
        .iter()
        .filter(|element| matches!(element.role, Role::Select | Role::Tick | Role::Number));
    let sortable = written || !scene.page.has_text && filters.count() >= 2;
    let useful = scene.goal.extremes.len() == 1;
    if !sortable || seen || sorted || !useful || scene.memory.scrolled >= MOST_SCROLLS || scene.memory.bottom
    {
        return None;
    }
    scene.memory.scrolled += 1;
    Some(Move::new(Action::ScrollDown, "the list can be sorted further down"))
}
