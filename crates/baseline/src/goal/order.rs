//! Instructions that a task gives word by word: press this, choose that, type something, put things into the cart.

use super::subject;
use crate::{
    values,
    words::{Token, is_stop, tokens},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Press { target: String, times: usize },
    Choose { option: String, field: String },
    Type { value: String, field: String },
    Collect { item: String, count: usize },
}

const PRESS: [&str; 6] = ["press", "click", "push", "tap", "hit", "tick"];
const CHOOSE: [&str; 3] = ["choose", "select", "pick"];
const TYPE: [&str; 3] = ["type", "enter", "write"];
const COLLECT: [&str; 3] = ["put", "add", "place"];
const BASKETS: [&str; 4] = ["cart", "basket", "bag", "trolley"];
/// Words about a control that are not its name.
const CONTROL: [&str; 12] =
    ["the", "a", "an", "on", "button", "link", "field", "box", "option", "tab", "checkbox", "menu"];
const MOST_ORDERS: usize = 12;

pub(super) fn read(text: &str) -> Vec<Order> {
    let mut found = Vec::new();
    for (verb, clause, before) in clauses(text) {
        match verb.as_str() {
            verb if PRESS.contains(&verb) => found.extend(press(clause, before)),
            verb if CHOOSE.contains(&verb) => found.extend(choose(clause)),
            verb if TYPE.contains(&verb) => found.extend(typed(clause)),
            verb if COLLECT.contains(&verb) => found.extend(collect(clause)),
            _ => {}
        }
    }
    found.truncate(MOST_ORDERS);
    found
}

/// Verbs at the start of a sentence or behind `and`, `then` or a comma; each with the words up to the next, and the text
/// of its sentence before it.
fn clauses(text: &str) -> Vec<(String, &str, &str)> {
    let all = tokens(text);
    let lower: Vec<String> = all.iter().map(Token::lower).collect();
    let is_verb = |place: usize| {
        let begins = place == 0 || all[place].begins_sentence() || all[place].gap.contains(',');
        let behind = place > 0 && ["and", "then"].contains(&lower[place - 1].as_str());
        let word = lower[place].as_str();
        (begins || behind) && [&PRESS[..], &CHOOSE, &TYPE, &COLLECT].iter().any(|verbs| verbs.contains(&word))
    };
    let mut found = Vec::new();
    for place in (0..all.len()).filter(|place| is_verb(*place)) {
        let ends = |later: &usize| all[*later].begins_sentence() || is_verb(*later);
        let last = (place + 1..all.len()).find(ends).unwrap_or(all.len());
        let until = text.get(all[place].end..all[last - 1].end).unwrap_or_default();
        // The sign that closes a quotation belongs to it.
        let closing = text
            .get(all[last - 1].end..)
            .and_then(|rest| rest.chars().next())
            .filter(|sign| "”\"»".contains(*sign));
        let to = all[place].end + until.len() + closing.map_or(0, char::len_utf8);
        let sentence = (0..=place).rev().find(|at| *at == 0 || all[*at].begins_sentence()).unwrap_or(0);
        let from = all[sentence].end - all[sentence].text.len();
        let before = text.get(from..all[place].end - all[place].text.len()).unwrap_or_default();
        found.push((lower[place].clone(), text.get(all[place].end..to).unwrap_or_default(), before));
    }
    found
}

fn press(clause: &str, before: &str) -> Option<Order> {
    let all = tokens(clause);
    let named = subject::quoted(clause).first().map(|(_, phrase)| (*phrase).to_owned());
    let times = all
        .windows(2)
        .find(|two| two[1].lower().starts_with("time"))
        .and_then(|two| values::counting(two[0].text));
    let once = all.iter().map(Token::lower).find(|word| word == "twice").map(|_| 2);
    let target = named.or_else(|| match all.first().map(Token::lower).as_deref() {
        Some("it" | "them" | "this") => subject::read(before).pop().map(|subject| subject.text),
        _ => Some(bare(clause)),
    })?;
    (!target.is_empty()).then(|| Order::Press { target, times: times.or(once).unwrap_or(1).clamp(1, 20) })
}

/// The words without those that only say what sort of control it is.
fn bare(clause: &str) -> String {
    let all = tokens(clause);
    let from = all.iter().position(|token| !CONTROL.contains(&token.lower().as_str())).unwrap_or(all.len());
    let ends =
        |word: &str| is_stop(word) || CONTROL.contains(&word) || ["twice", "once", "times"].contains(&word);
    let length = all[from..]
        .iter()
        .take(6)
        .take_while(|token| !ends(&token.lower()) && !token.gap.contains(','))
        .count();
    if length == 0 {
        return String::new();
    }
    let start = all[from].end - all[from].text.len();
    clause.get(start..all[from + length - 1].end).unwrap_or_default().trim().to_owned()
}

/// `Robin as the bird`, `Red from the list “Colour”`.
fn choose(clause: &str) -> Option<Order> {
    let split = [" as ", " from ", " in ", " for ", " under "]
        .iter()
        .filter_map(|word| Some((clause.find(word)?, word.len())));
    let (option, field) = match split.min_by_key(|(at, _)| *at) {
        Some((at, length)) => (&clause[..at], &clause[at + length..]),
        None => (clause, ""),
    };
    let name = |text: &str| {
        subject::quoted(text).first().map_or_else(|| bare(text), |(_, phrase)| (*phrase).to_owned())
    };
    let option = name(option);
    (!option.is_empty()).then(|| Order::Choose { option, field: name(field) })
}

/// `finch into the field “First line” and 1984 into the field “Second line”`.
fn typed(clause: &str) -> Vec<Order> {
    let parts: Vec<&str> = clause.split(" into ").collect();
    let mut found = Vec::new();
    let mut value = parts.first().copied().unwrap_or_default();
    for part in parts.iter().skip(1) {
        let (field, next) = part.split_once(" and ").unwrap_or((part, ""));
        let field =
            subject::quoted(field).first().map_or_else(|| bare(field), |(_, phrase)| (*phrase).to_owned());
        let text = subject::quoted(value).first().map_or(value.trim(), |(_, phrase)| phrase);
        if !text.is_empty() && !field.is_empty() {
            found.push(Order::Type { value: text.to_owned(), field });
        }
        value = next;
    }
    found
}

/// `two Glass jars and one Tin kettle into the cart`. Things that must be found out first are no order yet.
fn collect(clause: &str) -> Vec<Order> {
    let cut = [" into ", " in ", " to "].iter().filter_map(|word| {
        let at = clause.rfind(word)?;
        let rest = tokens(&clause[at + word.len()..]);
        rest.iter().take(4).any(|token| BASKETS.contains(&token.lower().as_str())).then_some(at)
    });
    let Some(at) = cut.max() else { return Vec::new() };
    let things = &clause[..at];
    let found_out = tokens(things).iter().any(|token| super::extreme::is_superlative(&token.lower()));
    if found_out {
        return Vec::new();
    }
    things.split(" and ").flat_map(|part| part.split(',')).filter_map(thing).collect()
}

fn thing(part: &str) -> Option<Order> {
    let all = tokens(part);
    let counted = all.first().and_then(|token| values::counting(token.text));
    let skip = |token: &&Token<'_>| {
        let word = token.lower();
        is_stop(&word)
            || values::counting(&word).is_some()
            || ["pair", "piece", "copy", "set"].contains(&word.as_str())
    };
    let from = all.iter().take_while(skip).count();
    let start = all.get(from).map(|token| token.end - token.text.len())?;
    let item = part.get(start..)?.trim().to_owned();
    Some(Order::Collect { item, count: counted.unwrap_or(1).clamp(1, 99) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(target: &str, times: usize) -> Order {
        Order::Press { target: target.into(), times }
    }

    #[test]
    fn pressing() {
        assert_eq!(read("Press “Ring bell” three times. What happens?"), [press("Ring bell", 3)]);
        assert_eq!(read("Press the button “Ask me”."), [press("Ask me", 1)]);
        assert_eq!(read("Scroll down until Item 12 appears and click it."), [press("Item 12", 1)]);
        assert_eq!(read("Click the Save button twice"), [press("Save", 2)]);
    }

    #[test]
    fn choosing_and_typing() {
        let choose = Order::Choose { option: "Robin".into(), field: "bird".into() };
        assert_eq!(read("Choose Robin as the bird."), [choose]);
        let typed = |value: &str, field: &str| Order::Type { value: value.into(), field: field.into() };
        assert_eq!(
            read(
                "Type finch into the field “First line” and 1984 into the field “Second line”, then press Save."
            ),
            [typed("finch", "First line"), typed("1984", "Second line"), press("Save", 1)]
        );
    }

    #[test]
    fn collecting() {
        let collect = |item: &str, count| Order::Collect { item: item.into(), count };
        assert_eq!(
            read("Put two Glass jars and one pair of Wool socks into the cart. What is the total?"),
            [collect("Glass jars", 2), collect("Wool socks", 1)]
        );
        assert!(read("Put the cheapest chair into the cart.").is_empty());
        assert!(read("Add 2 and 3. Which company puts people first?").is_empty());
    }
}
