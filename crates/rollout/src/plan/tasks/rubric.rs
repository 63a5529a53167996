//! Converts the four forms of a task's rubric (`evaluator_reference`) into one list of items.

use proto::trajectory::RubricItem;
use serde_json::{Map, Value};

use super::{
    defects::LineDefects,
    fields::{integer, kind, string},
};

/// Reads a rubric: a string, or a list of strings, of objects with a description, or of groups of facts.
pub(super) fn parse(reference: Value, defects: &mut LineDefects) -> Vec<RubricItem> {
    match reference {
        Value::String(description) => vec![item(description, 1)],
        Value::Array(entries) => entries
            .into_iter()
            .enumerate()
            .flat_map(|(index, entry)| parse_entry(entry, &format!("evaluator_reference[{index}]"), defects))
            .collect(),
        other => {
            defects.add(format!("evaluator_reference must be a string or a list, not {}", kind(&other)));
            Vec::new()
        }
    }
}

fn item(description: String, difficulty: i64) -> RubricItem {
    RubricItem { description, difficulty }
}

fn parse_entry(entry: Value, path: &str, defects: &mut LineDefects) -> Vec<RubricItem> {
    match entry {
        Value::String(description) => vec![item(description, 1)],
        Value::Object(fields) => parse_object(fields, path, defects),
        other => {
            defects.add(format!("{path} must be a string or an object, not {}", kind(&other)));
            Vec::new()
        }
    }
}

/// Reads `{"description", "difficulty"}`, or a group `{"id", "description", "facts"}`.
fn parse_object(mut fields: Map<String, Value>, path: &str, defects: &mut LineDefects) -> Vec<RubricItem> {
    let within = |reason: String| format!("{path}.{reason}");
    let difficulty = integer(fields.shift_remove("difficulty"), "difficulty").map_err(within);
    let difficulty = defects.check(difficulty).unwrap_or(1);
    let description = defects.check(string(&mut fields, "description").map_err(within));
    let Some(facts) = fields.shift_remove("facts") else { return vec![item(description, difficulty)] };
    let id = match fields.shift_remove("id") {
        Some(Value::String(id)) => id,
        Some(Value::Number(id)) => id.to_string(),
        _ => {
            defects.add(within("id is missing (a group of facts needs one)".into()));
            String::new()
        }
    };
    let Value::Array(facts) = facts else {
        defects.add(within(format!("facts must be a list of strings, not {}", kind(&facts))));
        return Vec::new();
    };
    let mut items = Vec::with_capacity(facts.len());
    for fact in facts {
        match fact {
            Value::String(fact) => {
                items.push(item(format!("[Group {id}: {description}] {fact}"), difficulty));
            }
            other => defects.add(within(format!("facts must be strings, not {}", kind(&other)))),
        }
    }
    items
}
