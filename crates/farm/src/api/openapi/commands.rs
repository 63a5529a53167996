//! The schema of browser commands and their arguments.

use proto::{Command, CommandError};
use serde_json::{Map, Value, json};

/// The schema of `{"<command>": {…arguments}}` with exactly one command.
pub(super) fn schema() -> Value {
    json!({
        "type": "object", "properties": properties(), "minProperties": 1, "maxProperties": 1,
        "additionalProperties": false,
    })
}

/// Maps every command's name to the schema of its arguments.
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
    // A command without arguments also accepts null.
    let types = if accepted.is_empty() { json!(["object", "null"]) } else { json!("object") };
    json!({"type": types, "properties": described, "required": required, "additionalProperties": false})
}

/// Asks the command parser itself, by leaving out the argument.
fn is_required(command: &str, argument: &str) -> bool {
    let others: Map<String, Value> = Command::accepted_arguments(command)
        .iter()
        .filter(|accepted| **accepted != argument)
        .map(|accepted| ((*accepted).to_owned(), sample(accepted)))
        .collect();
    let body = Map::from_iter([(command.to_owned(), others.into())]);
    matches!(Command::from_json(&body, &[]), Err(CommandError::MissingArgument { .. }))
}

fn sample(argument: &str) -> Value {
    match argument {
        "press_enter" | "delete_existing" | "full_page" => json!(true),
        "direction" => json!("down"),
        "keys" => json!(["enter"]),
        "path" => json!([[1, 1], [2, 2]]),
        "files" => json!(["a.txt"]),
        "button" => json!("left"),
        "interaction_mode" => json!("coordinates"),
        _ => json!("1"),
    }
}

fn argument_schema(argument: &str, required: bool) -> Value {
    let mut types = match argument {
        "url" | "value" | "text" | "key" => vec!["string", "number"],
        "id" => vec!["string", "integer"],
        "press_enter" | "delete_existing" | "full_page" => vec!["boolean", "string"],
        "direction" | "interaction_mode" | "button" => vec!["string"],
        "keys" => vec!["array", "string"],
        "path" | "files" => vec!["array"],
        // Numbers may be sent as strings.
        _ => vec!["number", "string"],
    };
    if !required {
        types.push("null");
    }
    let mut schema = json!({ "type": types });
    match argument {
        "id" => schema["minLength"] = json!(1),
        "press_enter" | "delete_existing" | "full_page" => {
            schema["pattern"] = json!(case_insensitive(&["true", "false"]));
        }
        "direction" => schema["pattern"] = json!(case_insensitive(&["up", "down", "left", "right"])),
        "interaction_mode" => schema["pattern"] = json!("^(set_of_marks|coordinates)$"),
        "keys" => {
            schema["items"] = json!({"type": "string"});
            schema["minItems"] = json!(1);
        }
        "button" => schema["pattern"] = json!(case_insensitive(&["left", "middle", "right"])),
        "clicks" => (schema["minimum"], schema["maximum"]) = (json!(1), json!(3)),
        "dx" | "dy" => (schema["minimum"], schema["maximum"]) = (json!(-100_000), json!(100_000)),
        "text" => schema["maxLength"] = json!(100_000),
        "path" => {
            let coordinate = json!({"type": ["number", "string"]});
            let pair = json!({"type": "array", "items": coordinate, "minItems": 2, "maxItems": 2});
            let object = json!({"type": "object", "properties": {"x": coordinate, "y": coordinate}, "required": ["x", "y"], "additionalProperties": false});
            schema["items"] = json!({"anyOf": [pair, object]});
            (schema["minItems"], schema["maxItems"]) = (json!(2), json!(500));
        }
        "files" => {
            schema["items"] = json!({"type": "string"});
            (schema["minItems"], schema["maxItems"]) = (json!(1), json!(20));
        }
        "n_lines" => schema["minimum"] = json!(0),
        _ => {}
    }
    schema
}

/// Returns a case-insensitive pattern for these words; JSON Schema patterns have no flag for that.
fn case_insensitive(words: &[&str]) -> String {
    let letter = |letter: char| format!("[{}{letter}]", letter.to_ascii_uppercase());
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!("^({})$", words.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_arguments_match_the_parser() {
        let required = |command: &str| arguments(command)["required"].clone();
        assert_eq!(required("visit_page"), json!(["url"]));
        assert_eq!(required("fill_coords"), json!(["x", "y", "value"]));
        assert_eq!(required("hover_and_scroll_coords"), json!(["x", "y"]));
        assert_eq!(required("scroll_id"), json!(["id", "direction"]));
        assert_eq!(required("get_webpage_text"), json!([]));
    }
}
