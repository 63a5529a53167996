//! Parses actions written as text: `Click [512, 300]`, `Type [12] [hello]`, `ANSWER [42]`, also with `;` between the
//! parts.

use proto::{InteractionMode, trajectory::Action};
use serde_json::{Map, Value, json};

use super::{
    action::{ActionKey, new_action, text_argument},
    arguments,
    lenient_json::WorkBudget,
};

/// Returns the action of the first line that contains nothing but an action.
pub(super) fn find_action(text: &str, mode: InteractionMode, budget: &mut WorkBudget) -> Option<Action> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let rest = &text[start..];
        start += line.len();
        budget.spend(line.len());
        if let Some(action) = parse_line(line, rest, mode, budget) {
            return Some(action);
        }
    }
    None
}

/// Strips bullets, quotes, emphasis and the label "Action:" before the action.
fn strip_prefix(line: &str) -> &str {
    let is_markup = |c: char| c.is_whitespace() || matches!(c, '*' | '-' | '`' | '#' | '"' | '.');
    let line = line.trim_start_matches(is_markup);
    let after = line.get(..7).filter(|head| head.eq_ignore_ascii_case("action:")).map(|_| &line[7..]);
    after.unwrap_or(line).trim_start_matches(is_markup)
}

/// Parses the action that starts on `line`. `rest` is the text from this line to the end.
fn parse_line(line: &str, rest: &str, mode: InteractionMode, budget: &mut WorkBudget) -> Option<Action> {
    // A line with `>` is a quotation, not an action of the model.
    let body = Some(strip_prefix(line)).filter(|body| !body.starts_with('>'))?;
    let bracket = body.find('[');
    let name = body[..bracket.unwrap_or(body.len())].trim().trim_end_matches([';', ':', '.', '`', '*', ' ']);
    let key = ActionKey::from_model_name(name)?;
    let Some(bracket) = bracket else {
        let needs_no_argument = matches!(key, ActionKey::Wait | ActionKey::GoBack | ActionKey::TabAndEnter);
        return needs_no_argument.then(|| new_action(key, Map::new()));
    };
    let brackets = &body[bracket..];
    let offset = line.len() - body.len() + bracket;
    match key {
        ActionKey::Answer => {
            let text = free_text(&rest[offset..], brackets.len(), budget);
            Some(new_action(key, Map::from_iter([(text_argument(key, mode).to_owned(), json!(text))])))
        }
        ActionKey::Type => {
            // Parse the target first: only a line that is certainly an action may read the lines below it.
            let (target, length) = first_part(brackets)?;
            let mut arguments = parse_target(&target, mode)?;
            let second = brackets[length..].find('[')? + length;
            let text = free_text(&rest[offset + second..], brackets.len() - second, budget);
            arguments.insert(text_argument(key, mode).into(), json!(text));
            Some(new_action(key, arguments))
        }
        ActionKey::Navigate => {
            let (url, _) = brackets[1..].rsplit_once(']')?;
            build_action(key, name, &[url.trim().to_owned()], mode)
        }
        _ => build_action(key, name, &all_parts(brackets), mode),
    }
}

/// Reads `[…]` at the start, up to the first closing bracket. Returns the content and the length with brackets.
fn first_part(text: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(']')?;
    Some((inner[..end].trim().to_owned(), end + 2))
}

fn all_parts(text: &str) -> Vec<String> {
    text.split('[')
        .skip(1)
        .filter_map(|part| part.split_once(']'))
        .map(|(inner, _)| inner.trim().to_owned())
        .collect()
}

/// Reads free text in brackets. As it may contain brackets, it ends at the last bracket of the first line that ends with
/// one, which may be a later line.
fn free_text(text: &str, first_line: usize, budget: &mut WorkBudget) -> String {
    let inner = &text[1..];
    let mut end = 0;
    for line in inner.split_inclusive('\n') {
        end += line.len();
        budget.spend(line.len());
        let closed = line.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '*' | '"' | '.'));
        if let Some(body) = closed.strip_suffix(']') {
            return inner[..end - line.len() + body.len()].to_owned();
        }
    }
    // No line ends with a bracket: use only the first line.
    let line = &inner[..first_line - 1];
    line.rsplit_once(']').map_or(line, |(before, _)| before).trim_end().to_owned()
}

fn parse_target(text: &str, mode: InteractionMode) -> Option<Map<String, Value>> {
    let value = Value::String(text.to_owned());
    let (name, target) = match mode {
        InteractionMode::Coordinates => (Action::COORDINATES, arguments::coordinate(&value)?),
        InteractionMode::SetOfMarks => ("element_id", json!(arguments::element_id(&value)?)),
    };
    Some(Map::from_iter([(name.to_owned(), target)]))
}

fn build_action(key: ActionKey, name: &str, parts: &[String], mode: InteractionMode) -> Option<Action> {
    let first = parts.first().map(String::as_str);
    let last = parts.last().map(String::as_str);
    let mut arguments = Map::new();
    match key {
        ActionKey::Click | ActionKey::Hover | ActionKey::HoverAndScroll => {
            arguments = parse_target(first?, mode)?;
        }
        ActionKey::Scroll if parts.len() > 1 => arguments = parse_target(first?, mode).unwrap_or_default(),
        _ => {}
    }
    match key {
        ActionKey::Scroll | ActionKey::HoverAndScroll => {
            let direction =
                last.and_then(arguments::direction).or_else(|| arguments::direction(name)).unwrap_or("down");
            arguments.insert("direction".into(), json!(direction));
        }
        ActionKey::Wait => {
            let time = first.and_then(|text| arguments::seconds(&json!(text)));
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
    Some(new_action(key, arguments))
}
