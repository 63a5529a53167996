//! Actions written as text: `Click [512, 300]`, `Type [12] [hello]`, `ANSWER [42]`, also with `;` between the parts.

use proto::{InteractionMode, trajectory::Action};
use serde_json::{Map, Value, json};

use super::{
    lenient::Work,
    words::{self, ActionKey, action},
};

/// The action that the lines hold, if one of them is nothing but an action.
pub(super) fn find(text: &str, mode: InteractionMode, work: &mut Work) -> Option<Action> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let rest = &text[start..];
        start += line.len();
        work.spend(line.len());
        if let Some(action) = at_line_start(line, rest, mode, work) {
            return Some(action);
        }
    }
    None
}

/// Bullets, quotes, emphasis and the word "Action:" before the action itself.
fn bare(line: &str) -> &str {
    let dressing = |c: char| c.is_whitespace() || matches!(c, '*' | '-' | '`' | '#' | '"' | '.');
    let line = line.trim_start_matches(dressing);
    let after = line.get(..7).filter(|head| head.eq_ignore_ascii_case("action:")).map(|_| &line[7..]);
    after.unwrap_or(line).trim_start_matches(dressing)
}

fn at_line_start(line: &str, rest: &str, mode: InteractionMode, work: &mut Work) -> Option<Action> {
    // A line marked as quoted is somebody else's.
    let body = Some(bare(line)).filter(|body| !body.starts_with('>'))?;
    let bracket = body.find('[');
    let word = body[..bracket.unwrap_or(body.len())].trim().trim_end_matches([';', ':', '.', '`', '*', ' ']);
    let key = ActionKey::from_word(word)?;
    let Some(bracket) = bracket else {
        let alone = matches!(key, ActionKey::Wait | ActionKey::GoBack | ActionKey::TabAndEnter);
        return alone.then(|| action(key, Map::new()));
    };
    let brackets = &body[bracket..];
    let offset = line.len() - body.len() + bracket;
    match key {
        ActionKey::Answer => {
            let text = free_text(&rest[offset..], brackets.len(), work);
            Some(action(key, Map::from_iter([("text".to_owned(), json!(text))])))
        }
        ActionKey::Type => {
            // The target first: only a line that is an action for sure may look at the lines below it.
            let (target, length) = simple_part(brackets)?;
            let mut arguments = aim(&target, mode)?;
            let second = brackets[length..].find('[')? + length;
            let text = free_text(&rest[offset + second..], brackets.len() - second, work);
            arguments.insert("text".into(), json!(text));
            Some(action(key, arguments))
        }
        ActionKey::Navigate => {
            let (url, _) = brackets[1..].rsplit_once(']')?;
            build(key, word, &[url.trim().to_owned()], mode)
        }
        _ => build(key, word, &simple_parts(brackets), mode),
    }
}

/// `[…]` at the start, up to the first closing bracket; gives the inside and the length.
fn simple_part(text: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(']')?;
    Some((inner[..end].trim().to_owned(), end + 2))
}

fn simple_parts(text: &str) -> Vec<String> {
    text.split('[')
        .skip(1)
        .filter_map(|part| part.split_once(']'))
        .map(|(inner, _)| inner.trim().to_owned())
        .collect()
}

/// Free text may hold brackets itself: it ends at the last bracket of a line that ends with one, this line or a later one.
fn free_text(text: &str, first_line: usize, work: &mut Work) -> String {
    let inner = &text[1..];
    let mut end = 0;
    for line in inner.split_inclusive('\n') {
        end += line.len();
        work.spend(line.len());
        let closed = line.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '*' | '"' | '.'));
        if let Some(body) = closed.strip_suffix(']') {
            return inner[..end - line.len() + body.len()].to_owned();
        }
    }
    // Nothing closes it so: what stands on its own line is all there is.
    let line = &inner[..first_line - 1];
    line.rsplit_once(']').map_or(line, |(before, _)| before).trim_end().to_owned()
}

fn aim(text: &str, mode: InteractionMode) -> Option<Map<String, Value>> {
    let value = Value::String(text.to_owned());
    let (name, target) = match mode {
        InteractionMode::Coordinates => ("coordinate", words::coordinate(&value)?),
        InteractionMode::SetOfMarks => ("element_id", json!(words::element_id(&value)?)),
    };
    Some(Map::from_iter([(name.to_owned(), target)]))
}

fn build(key: ActionKey, word: &str, parts: &[String], mode: InteractionMode) -> Option<Action> {
    let first = parts.first().map(String::as_str);
    let last = parts.last().map(String::as_str);
    let mut arguments = Map::new();
    match key {
        ActionKey::Click | ActionKey::Hover | ActionKey::HoverAndScroll => arguments = aim(first?, mode)?,
        ActionKey::Scroll if parts.len() > 1 => arguments = aim(first?, mode).unwrap_or_default(),
        _ => {}
    }
    match key {
        ActionKey::Scroll | ActionKey::HoverAndScroll => {
            let direction =
                last.and_then(words::direction_in).or_else(|| words::direction_in(word)).unwrap_or("down");
            arguments.insert("direction".into(), json!(direction));
        }
        ActionKey::Wait => {
            let time = first.and_then(|text| words::seconds(&json!(text)));
            arguments.extend(time.map(|time| ("time".to_owned(), json!(time))));
        }
        ActionKey::GoBack => {
            let to = first.filter(|to| !to.is_empty());
            arguments.extend(to.map(|to| ("goback_to".to_owned(), json!(to))));
        }
        ActionKey::Navigate => {
            arguments.insert("url".into(), json!(first.filter(|url| !url.is_empty())?));
        }
        _ => {}
    }
    Some(action(key, arguments))
}
