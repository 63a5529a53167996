//! Doing what the task says word by word, and reporting what came of it.

use super::{Scene, shape::shaped};
use crate::{
    action::{Action, Move},
    goal::{Kind, Order, Subject},
    page::{self, Element, Role},
    words,
};

/// Far enough for lists that grow while one scrolls.
const MOST_SCROLLS: usize = 12;
const PRESSABLE: [Role; 5] = [Role::Button, Role::Link, Role::Tick, Role::Option, Role::Other];
const BASKETS: [&str; 4] = ["cart", "basket", "bag", "trolley"];

pub(super) fn next_order(scene: &mut Scene<'_>) -> Option<Move> {
    let order = scene.goal.orders.get(scene.memory.orders)?.clone();
    match order {
        Order::Press { target, times } => press(scene, &target, times),
        Order::Choose { option, field } => choose(scene, &option, &field),
        Order::Type { value, field } => fill(scene, &value, &field),
        Order::Collect { item, count } => collect(scene, &item, count),
    }
}

/// The order is carried out with this move.
fn done(scene: &mut Scene<'_>, action: Action, why: &str) -> Option<Move> {
    scene.memory.remember_lines(scene.page);
    scene.memory.orders += 1;
    scene.memory.times = 0;
    scene.memory.scrolled = 0;
    Some(Move::new(action, why))
}

fn press(scene: &mut Scene<'_>, target: &str, times: usize) -> Option<Move> {
    let Some(element) = scene.page.named(target, &PRESSABLE).cloned() else { return scroll(scene, target) };
    let action = Action::click(&element);
    if scene.memory.times + 1 >= times {
        return done(scene, action, "the task says so");
    }
    scene.memory.times += 1;
    let why = format!("the task says so, {} of {times}", scene.memory.times);
    Some(Move::new(action, why))
}

fn scroll(scene: &mut Scene<'_>, target: &str) -> Option<Move> {
    if scene.memory.bottom || scene.memory.scrolled >= MOST_SCROLLS {
        return None;
    }
    scene.memory.scrolled += 1;
    Some(Move::new(Action::ScrollDown, format!("“{target}” is not in sight yet")))
}

fn choose(scene: &mut Scene<'_>, option: &str, field: &str) -> Option<Move> {
    if let Some(element) = scene.page.named(option, &[Role::Option, Role::Tick]).cloned() {
        return done(scene, Action::click(&element), "the task says to choose it");
    }
    if let Some(select) = scene.page.named(field, &[Role::Select]).cloned() {
        // Typing into a list chooses the option that reads so.
        return done(scene, Action::fill(&select, option), "the task says to choose it");
    }
    press(scene, option, 1)
}

fn fill(scene: &mut Scene<'_>, value: &str, field: &str) -> Option<Move> {
    let fields = [Role::Text, Role::Number, Role::Date];
    let Some(element) = scene.page.named(field, &fields).cloned() else { return scroll(scene, field) };
    done(scene, Action::fill(&element, value), "the task says to type it")
}

/// Opens the page of the thing by the usual ways, then adds it.
fn collect(scene: &mut Scene<'_>, item: &str, count: usize) -> Option<Move> {
    let subject = Subject::new(item);
    if !scene.is_about(&subject) {
        scene.memory.subject = Some(item.to_owned());
        return None;
    }
    let adds = |element: &&Element| {
        let first = element.stems.first().map_or("", String::as_str);
        first == "add" || first == "buy" || element.stems.iter().any(|stem| BASKETS.contains(&stem.as_str()))
    };
    let amount = scene
        .page
        .of(Role::Number)
        .find(|field| field.stems.iter().any(|stem| words::alike(stem, &words::stem("quantity"))));
    if count > 1
        && let Some(field) = amount.cloned()
    {
        return done(
            scene,
            Action::fill(&field, &count.to_string()),
            "typing the number sends the form that adds it",
        );
    }
    let Some(button) = scene.page.of(Role::Button).find(adds).cloned() else { return scroll(scene, "Add") };
    press_to_add(scene, &button, count)
}

fn press_to_add(scene: &mut Scene<'_>, button: &Element, count: usize) -> Option<Move> {
    let name = button.text.clone();
    press(scene, &name, count)
}

/// When all is done: what the question wants to know about the outcome.
pub(super) fn report(scene: &mut Scene<'_>) -> Option<Move> {
    let goal = scene.goal;
    if goal.orders.is_empty() || scene.memory.orders < goal.orders.len() {
        return None;
    }
    let labelled = if goal.kind == Kind::Said { held(scene) } else { outcome(scene) };
    if let Some(answer) = labelled.or_else(|| changed(scene)) {
        return Some(Move::new(Action::answer(&answer), "this is what the page says after all that"));
    }
    let collected = goal.orders.iter().any(|order| matches!(order, Order::Collect { .. }));
    let basket =
        scene.page.links().find(|link| link.stems.iter().any(|stem| BASKETS.contains(&stem.as_str())));
    let basket = basket.filter(|_| collected)?.clone();
    scene.once(Action::click(&basket), "the total is in there")
}

/// What the fields hold that were typed into, as the page tells it: beside a word of each field's name.
fn held(scene: &Scene<'_>) -> Option<String> {
    if !scene.goal.noun.contains(&words::stem("fields")) {
        return None;
    }
    let pairs = page::pairs(scene.page);
    let fields = scene.goal.orders.iter().filter_map(|order| match order {
        Order::Type { field, .. } => Some(words::stems(field)),
        _ => None,
    });
    let values: Option<Vec<String>> = fields
        .map(|field| {
            let fits = |pair: &&page::Pair| {
                !pair.stems.is_empty() && pair.stems.iter().all(|stem| field.contains(stem))
            };
            pairs.iter().rev().find(fits).map(|pair| pair.value.clone())
        })
        .collect();
    values.filter(|values| !values.is_empty()).map(|values| values.join(", "))
}

/// The last value beside a label that the question asks for.
fn outcome(scene: &Scene<'_>) -> Option<String> {
    let goal = scene.goal;
    let asked: Vec<&String> = goal.noun.iter().chain(&goal.wanted).collect();
    let pairs = page::pairs(scene.page);
    let fits = |pair: &&page::Pair| {
        let words: Vec<&String> = pair.stems.iter().filter(|stem| !words::is_stop(stem)).collect();
        !words.is_empty() && words.iter().all(|word| asked.iter().any(|stem| words::alike(stem, word)))
    };
    pairs.iter().rev().filter(fits).find_map(|pair| shaped(goal, &pair.value))
}

/// The last line that was not there before; of `label: value` the value, when the label is what is asked for.
fn changed(scene: &Scene<'_>) -> Option<String> {
    let new = scene.memory.new_lines(scene.page);
    let line = new.last()?;
    let whole = scene.goal.noun.contains(&words::stem("line"));
    if let Some((label, value)) = line.split_once(": ").filter(|_| !whole) {
        let label = words::stems(label);
        if label.iter().all(|stem| scene.goal.words.contains(stem)) && !value.trim().is_empty() {
            return Some(value.trim().to_owned());
        }
    }
    Some((*line).to_owned())
}
