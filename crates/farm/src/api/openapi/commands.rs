//! The schema of a browser command: one of all there are, each with its own arguments.

use proto::{Command, CommandError};
use serde_json::{Map, Value, json};

/// `{"<command>": {…arguments}}` with exactly one command.
pub(super) fn schema() -> Value {
    json!({
        "type": "object", "properties": properties(), "minProperties": 1, "maxProperties": 1,
        "additionalProperties": false,
    })
}

/// Every command's name, with the schema of its arguments.
pub(super) fn properties() -> Map<String, Value> {
    Command::names().map(|name| (name.to_owned(), arguments(name))).collect()
}

fn arguments(command: &str) -> Value {
    let accepted = Command::accepted_arguments(command);
    let required: Vec<&str> =
        accepted.iter().copied().filter(|argument| is_required(command, argument)).collect();
    let described: Map<String, Value> = accepted
        .iter()
        .map(|argument| ((*argument).to_owned(), argument_schema(argument, required.contains(argument))))
        .collect();
    // What needs no arguments may be given none at all.
    let kind = if accepted.is_empty() { json!(["object", "null"]) } else { json!("object") };
    json!({"type": kind, "properties": described, "required": required, "additionalProperties": false})
}

/// Asks the reader of commands itself, by leaving the argument out.
fn is_required(command: &str, argument: &str) -> bool {
    let given: Map<String, Value> = Command::accepted_arguments(command)
        .iter()
        .filter(|accepted| **accepted != argument)
        .map(|accepted| ((*accepted).to_owned(), sample(accepted)))
        .collect();
    let body = Map::from_iter([(command.to_owned(), given.into())]);
    matches!(Command::from_json(&body, &[]), Err(CommandError::MissingArgument { .. }))
}

fn sample(argument: &str) -> Value {
    match argument {
        "press_enter" | "delete_existing" | "full_page" => json!(true),
        "direction" => json!("down"),
        "keys" => json!(["enter"]),
        "interaction_mode" => json!("coordinates"),
        _ => json!("1"),
    }
}

fn argument_schema(argument: &str, required: bool) -> Value {
    let mut types = match argument {
        "url" | "value" => vec!["string", "number"],
        "id" => vec!["string", "integer"],
        "press_enter" | "delete_existing" | "full_page" => vec!["boolean", "string"],
        "direction" | "interaction_mode" => vec!["string"],
        "keys" => vec!["array"],
        // Numbers may come as strings.
        _ => vec!["number", "string"],
    };
    if !required {
        types.push("null");
    }
    let mut schema = json!({ "type": types });
    match argument {
        "id" => schema["minLength"] = json!(1),
        "press_enter" | "delete_existing" | "full_page" => {
            schema["pattern"] = json!(any_case(&["true", "false"]))
        }
        "direction" => schema["pattern"] = json!(any_case(&["up", "down", "left", "right"])),
        "interaction_mode" => schema["pattern"] = json!("^(set_of_marks|coordinates)$"),
        "keys" => {
            schema["items"] = json!({"type": "string"});
            schema["minItems"] = json!(1);
        }
        "n_lines" => schema["minimum"] = json!(0),
        _ => {}
    }
    schema
}

/// A pattern for these words in large or small letters; the dialect of JSON Schema has no flag for that.
fn any_case(words: &[&str]) -> String {
    let letter = |letter: char| format!("[{}{letter}]", letter.to_ascii_uppercase());
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!("^({})$", words.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_given_is_what_the_reader_misses() {
        let required = |command: &str| arguments(command)["required"].clone();
        assert_eq!(required("visit_page"), json!(["url"]));
        assert_eq!(required("fill_coords"), json!(["x", "y", "value"]));
        assert_eq!(required("hover_and_scroll_coords"), json!(["x", "y"]));
        assert_eq!(required("scroll_id"), json!(["id", "direction"]));
        assert_eq!(required("get_webpage_text"), json!([]));
    }
}
