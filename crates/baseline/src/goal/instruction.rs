//! Parses the instructions of a task: press a control, choose an option, type a text, put things into the cart.

use super::subject;
use crate::{
    nlp::{Token, is_stop_word, tokenize},
    values,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    Press { target: String, times: usize },
    Choose { option: String, field: String },
    Type { value: String, field: String },
    AddToCart { item: String, count: usize },
}

const PRESS_VERBS: [&str; 6] = ["press", "click", "push", "tap", "hit", "tick"];
const CHOOSE_VERBS: [&str; 3] = ["choose", "select", "pick"];
const TYPE_VERBS: [&str; 3] = ["type", "enter", "write"];
const ADD_VERBS: [&str; 3] = ["put", "add", "place"];
const CART_WORDS: [&str; 4] = ["cart", "basket", "bag", "trolley"];
/// Words next to the name of a control that are not part of it.
const CONTROL_WORDS: [&str; 12] =
    ["the", "a", "an", "on", "button", "link", "field", "box", "option", "tab", "checkbox", "menu"];
const MAX_INSTRUCTIONS: usize = 12;

pub(super) fn parse(text: &str) -> Vec<Instruction> {
    let mut found = Vec::new();
    for (verb, clause, before) in clauses(text) {
        match verb.as_str() {
            verb if PRESS_VERBS.contains(&verb) => found.extend(press(clause, before)),
            verb if CHOOSE_VERBS.contains(&verb) => found.extend(choose(clause)),
            verb if TYPE_VERBS.contains(&verb) => found.extend(type_text(clause)),
            verb if ADD_VERBS.contains(&verb) => found.extend(add_to_cart(clause)),
            _ => {}
        }
    }
    found.truncate(MAX_INSTRUCTIONS);
    found
}

/// Returns the imperative clauses: the verb, the text after it, and the text of the sentence before it. A verb begins a
/// sentence or follows `and`, `then` or a comma.
fn clauses(text: &str) -> Vec<(String, &str, &str)> {
    let all = tokenize(text);
    let lower: Vec<String> = all.iter().map(Token::lower).collect();
    let is_verb = |index: usize| {
        let begins = index == 0 || all[index].begins_sentence() || all[index].gap.contains(',');
        let is_joined = index > 0 && ["and", "then"].contains(&lower[index - 1].as_str());
        let word = lower[index].as_str();
        (begins || is_joined)
            && [&PRESS_VERBS[..], &CHOOSE_VERBS, &TYPE_VERBS, &ADD_VERBS]
                .iter()
                .any(|verbs| verbs.contains(&word))
    };
    let mut found = Vec::new();
    for index in (0..all.len()).filter(|index| is_verb(*index)) {
        let is_end = |later: &usize| all[*later].begins_sentence() || is_verb(*later);
        let last = (index + 1..all.len()).find(is_end).unwrap_or(all.len());
        let until = text.get(all[index].end..all[last - 1].end).unwrap_or_default();
        // A closing quotation mark belongs to the clause.
        let closing = text
            .get(all[last - 1].end..)
            .and_then(|rest| rest.chars().next())
            .filter(|mark| "”\"»".contains(*mark));
        let to = all[index].end + until.len() + closing.map_or(0, char::len_utf8);
        let sentence =
            (0..=index).rev().find(|first| *first == 0 || all[*first].begins_sentence()).unwrap_or(0);
        let from = all[sentence].end - all[sentence].text.len();
        let before = text.get(from..all[index].end - all[index].text.len()).unwrap_or_default();
        found.push((lower[index].clone(), text.get(all[index].end..to).unwrap_or_default(), before));
    }
    found
}

fn press(clause: &str, before: &str) -> Option<Instruction> {
    let all = tokenize(clause);
    let quoted = subject::quoted(clause).first().map(|(_, phrase)| (*phrase).to_owned());
    let times = all
        .windows(2)
        .find(|two| two[1].lower().starts_with("time"))
        .and_then(|two| values::parse_count(two[0].text));
    let twice = all.iter().map(Token::lower).find(|word| word == "twice").map(|_| 2);
    let target = quoted.or_else(|| match all.first().map(Token::lower).as_deref() {
        Some("it" | "them" | "this") => subject::parse(before).pop().map(|subject| subject.text),
        _ => Some(control_name(clause)),
    })?;
    (!target.is_empty())
        .then(|| Instruction::Press { target, times: times.or(twice).unwrap_or(1).clamp(1, 20) })
}

/// Returns the name of a control without words such as "the" and "button".
fn control_name(clause: &str) -> String {
    let all = tokenize(clause);
    let from =
        all.iter().position(|token| !CONTROL_WORDS.contains(&token.lower().as_str())).unwrap_or(all.len());
    let is_end = |word: &str| {
        is_stop_word(word) || CONTROL_WORDS.contains(&word) || ["twice", "once", "times"].contains(&word)
    };
    let length = all[from..]
        .iter()
        .take(6)
        .take_while(|token| !is_end(&token.lower()) && !token.gap.contains(','))
        .count();
    if length == 0 {
        return String::new();
    }
    let start = all[from].end - all[from].text.len();
    clause.get(start..all[from + length - 1].end).unwrap_or_default().trim().to_owned()
}

/// Parses `Robin as the bird` or `Red from the list “Colour”`.
fn choose(clause: &str) -> Option<Instruction> {
    let split = [" as ", " from ", " in ", " for ", " under "]
        .iter()
        .filter_map(|word| Some((clause.find(word)?, word.len())));
    let (option, field) = match split.min_by_key(|(start, _)| *start) {
        Some((start, length)) => (&clause[..start], &clause[start + length..]),
        None => (clause, ""),
    };
    let name = |text: &str| {
        subject::quoted(text).first().map_or_else(|| control_name(text), |(_, phrase)| (*phrase).to_owned())
    };
    let option = name(option);
    (!option.is_empty()).then(|| Instruction::Choose { option, field: name(field) })
}

/// Parses `finch into the field “First line” and 1984 into the field “Second line”`.
fn type_text(clause: &str) -> Vec<Instruction> {
    let parts: Vec<&str> = clause.split(" into ").collect();
    let mut found = Vec::new();
    let mut value = parts.first().copied().unwrap_or_default();
    for part in parts.iter().skip(1) {
        let (field, next) = part.split_once(" and ").unwrap_or((part, ""));
        let field = subject::quoted(field)
            .first()
            .map_or_else(|| control_name(field), |(_, phrase)| (*phrase).to_owned());
        let text = subject::quoted(value).first().map_or(value.trim(), |(_, phrase)| phrase);
        if !text.is_empty() && !field.is_empty() {
            found.push(Instruction::Type { value: text.to_owned(), field });
        }
        value = next;
    }
    found
}

/// Parses `two Glass jars and one Tin kettle into the cart`. Things given by a superlative must be found first, so
/// they are not instructions.
fn add_to_cart(clause: &str) -> Vec<Instruction> {
    let cut = [" into ", " in ", " to "].iter().filter_map(|word| {
        let start = clause.rfind(word)?;
        let rest = tokenize(&clause[start + word.len()..]);
        rest.iter().take(4).any(|token| CART_WORDS.contains(&token.lower().as_str())).then_some(start)
    });
    let Some(end) = cut.max() else { return Vec::new() };
    let things = &clause[..end];
    let has_superlative =
        tokenize(things).iter().any(|token| super::superlative::is_superlative(&token.lower()));
    if has_superlative {
        return Vec::new();
    }
    things.split(" and ").flat_map(|part| part.split(',')).filter_map(counted_item).collect()
}

/// Parses `two Glass jars`.
fn counted_item(part: &str) -> Option<Instruction> {
    let all = tokenize(part);
    let count = all.first().and_then(|token| values::parse_count(token.text));
    let is_count_word = |token: &&Token<'_>| {
        let word = token.lower();
        is_stop_word(&word)
            || values::parse_count(&word).is_some()
            || ["pair", "piece", "copy", "set"].contains(&word.as_str())
    };
    let from = all.iter().take_while(is_count_word).count();
    let start = all.get(from).map(|token| token.end - token.text.len())?;
    let item = part.get(start..)?.trim().to_owned();
    Some(Instruction::AddToCart { item, count: count.unwrap_or(1).clamp(1, 99) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(target: &str, times: usize) -> Instruction {
        Instruction::Press { target: target.into(), times }
    }

    #[test]
    fn press_instructions_are_parsed() {
        assert_eq!(parse("Press “Ring bell” three times. What happens?"), [press("Ring bell", 3)]);
        assert_eq!(parse("Press the button “Ask me”."), [press("Ask me", 1)]);
        assert_eq!(parse("Scroll down until Item 12 appears and click it."), [press("Item 12", 1)]);
        assert_eq!(parse("Click the Save button twice"), [press("Save", 2)]);
    }

    #[test]
    fn choose_and_type_instructions_are_parsed() {
        let choose = Instruction::Choose { option: "Robin".into(), field: "bird".into() };
        assert_eq!(parse("Choose Robin as the bird."), [choose]);
        let typed = |value: &str, field: &str| Instruction::Type { value: value.into(), field: field.into() };
        assert_eq!(
            parse(
                "Type finch into the field “First line” and 1984 into the field “Second line”, then press Save."
            ),
            [typed("finch", "First line"), typed("1984", "Second line"), press("Save", 1)]
        );
    }

    #[test]
    fn cart_instructions_are_parsed() {
        let add = |item: &str, count| Instruction::AddToCart { item: item.into(), count };
        assert_eq!(
            parse("Put two Glass jars and one pair of Wool socks into the cart. What is the total?"),
            [add("Glass jars", 2), add("Wool socks", 1)]
        );
        assert!(parse("Put the cheapest chair into the cart.").is_empty());
        assert!(parse("Add 2 and 3. Which company puts people first?").is_empty());
    }
}
