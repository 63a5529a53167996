//! The checks of a task: the field `judge` of the task file. All checks of a task must hold.

use proto::trajectory::Task;
use serde_json::{Map, Value};

/// The field of a task that holds its checks.
pub const FIELD: &str = "judge";
/// The checks in the order in which they run: those that cost least first.
const NAMES: [&str; 6] = ["unsupported", "answer", "url", "text", "javascript", "command"];

/// One condition on the end of an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The check of the task's origin cannot be made here, for this reason. Leaves the episode unjudged.
    Unsupported(String),
    /// The agent's answer states all of these.
    Answer(Vec<String>),
    /// The page has one of these addresses; `*` stands for any text.
    Url(Vec<String>),
    /// The page shows all of these texts.
    Text(Vec<String>),
    /// The value of this expression in the page is the score.
    Javascript(String),
    /// This program prints the score.
    Command(Vec<String>),
}

/// Reads the checks of a task. `None` if it has none.
pub fn checks_of(task: &Task) -> Result<Option<Vec<Check>>, String> {
    task.extra.get(FIELD).filter(|field| !field.is_null()).map(parse).transpose()
}

/// Parses the field `judge`. The error names the part that is wrong.
pub fn parse(field: &Value) -> Result<Vec<Check>, String> {
    let accepted = NAMES.join(", ");
    let Value::Object(given) = field else {
        return Err(format!("judge must be an object with checks ({accepted})"));
    };
    if let Some(unknown) = given.keys().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(format!("judge.{unknown} is not a check (accepted: {accepted})"));
    }
    if given.is_empty() {
        return Err(format!("judge has no check (accepted: {accepted})"));
    }
    NAMES.iter().filter(|name| given.contains_key(**name)).map(|name| parse_check(name, given)).collect()
}

fn parse_check(name: &str, given: &Map<String, Value>) -> Result<Check, String> {
    let value = given.get(name).unwrap_or(&Value::Null);
    Ok(match name {
        "unsupported" => Check::Unsupported(text(name, value)?),
        "answer" => Check::Answer(texts(name, value)?),
        "url" => Check::Url(texts(name, value)?),
        "text" => Check::Text(texts(name, value)?),
        "javascript" => Check::Javascript(text(name, value)?),
        _ => match value {
            Value::Array(_) => Check::Command(texts(name, value)?),
            _ => return Err("judge.command must be a list: the program and its arguments".into()),
        },
    })
}

fn text(name: &str, value: &Value) -> Result<String, String> {
    let text = value.as_str().filter(|text| !text.trim().is_empty());
    text.map(str::to_owned).ok_or_else(|| format!("judge.{name} must be a string that is not empty"))
}

/// Reads one string or a list of strings.
fn texts(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("judge.{name} must be a string that is not empty, or a list of such strings");
    match value {
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(|item| text(name, item).map_err(|_| wrong())).collect()
        }
        Value::String(_) => text(name, value).map(|text| vec![text]).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn checks_are_parsed_in_order_of_cost() {
        let field = json!({"javascript": "done", "url": "http://a.test/*", "answer": ["1", "2"]});
        let expected = [
            Check::Answer(vec!["1".into(), "2".into()]),
            Check::Url(vec!["http://a.test/*".into()]),
            Check::Javascript("done".into()),
        ];
        assert_eq!(parse(&field).unwrap(), expected);
        assert_eq!(
            parse(&json!({"command": ["check", "-x"]})).unwrap(),
            [Check::Command(vec!["check".into(), "-x".into()])]
        );
    }

    #[test]
    fn wrong_field_is_named() {
        let cases = [
            (json!("x"), "judge must be an object with checks"),
            (json!({}), "judge has no check"),
            (json!({"jscript": "1"}), "judge.jscript is not a check (accepted: unsupported, answer, url"),
            (json!({"javascript": 1}), "judge.javascript must be a string"),
            (json!({"url": []}), "judge.url must be a string that is not empty, or a list"),
            (json!({"text": ["a", " "]}), "judge.text must be a string that is not empty, or a list"),
            (json!({"command": "rm -rf x"}), "judge.command must be a list: the program and its arguments"),
        ];
        for (field, expected) in cases {
            let error = parse(&field).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
