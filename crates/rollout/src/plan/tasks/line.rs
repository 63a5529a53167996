//! One line of a task file: what makes it a task, what is wrong with it otherwise, and the rubric in one form.

use proto::trajectory::{RubricItem, Task, TaskId};
use serde_json::{Map, Value};

use crate::address;

/// Reads a task, or says why the line is none.
pub fn parse(line: &[u8]) -> Result<Task, String> {
    let value: Value =
        serde_json::from_slice(line).map_err(|problem| format!("not JSON: {}", in_line(&problem)))?;
    let Value::Object(mut fields) = value else {
        return Err(format!("a task is a JSON object, not {}", kind(&value)));
    };
    let task_name = text(&mut fields, "task_name")?;
    if task_name.trim().is_empty() {
        return Err("task_name is empty".into());
    }
    let reference_answer = answer(fields.shift_remove("definite_answer"))?;
    let evaluator_reference = match fields.shift_remove("evaluator_reference") {
        None | Some(Value::Null) if reference_answer.is_some() => Vec::new(),
        None | Some(Value::Null) => {
            return Err(
                "evaluator_reference is missing, and there is no definite_answer to judge by either".into()
            );
        }
        Some(reference) => rubric(reference)?,
    };
    Ok(Task {
        task_name,
        domain: text(&mut fields, "domain")?,
        subdomain: text(&mut fields, "subdomain")?,
        website: website(&text(&mut fields, "website")?)?,
        difficulty: difficulty(fields.shift_remove("difficulty"))?,
        evaluator_reference,
        reference_answer,
        attempt_level: whole(fields.shift_remove("attempt_level"), "attempt_level")?.unwrap_or(0),
        task_id: task_id(fields.shift_remove("task_id"))?,
        max_steps: 0,
        trajectory_index: 0,
        extra: fields,
    })
}

/// The line number inside a one-line document is always 1 and only misleads.
fn in_line(problem: &serde_json::Error) -> String {
    problem.to_string().replace(" at line 1 column ", ", at column ")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Result<String, String> {
    match fields.shift_remove(name) {
        Some(Value::String(text)) => Ok(text),
        None => Err(format!("{name} is missing; it must be a string")),
        Some(other) => Err(format!("{name} must be a string, not {}", kind(&other))),
    }
}

fn website(text: &str) -> Result<String, String> {
    let address = address::with_scheme(text);
    if text.trim().is_empty() || address.contains(char::is_whitespace) || address::domain(&address).is_empty()
    {
        return Err(format!("website {text:?} is not a web address"));
    }
    Ok(address)
}

/// A whole number, also when written as `3.0`.
fn whole(value: Option<Value>, name: &str) -> Result<Option<i64>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let rounded = number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15).map(|f| f as i64);
            let whole = number.as_i64().or(rounded);
            whole.map(Some).ok_or_else(|| format!("{name} must be a whole number, not {number}"))
        }
        Some(other) => Err(format!("{name} must be a whole number, not {}", kind(&other))),
    }
}

fn difficulty(value: Option<Value>) -> Result<i64, String> {
    match whole(value, "difficulty")? {
        None => Err("difficulty is missing; it must be a whole number from 1".into()),
        Some(number) if number < 1 => Err(format!("difficulty must be 1 or more, not {number}")),
        Some(number) => Ok(number),
    }
}

fn task_id(value: Option<Value>) -> Result<Option<TaskId>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(TaskId::Text(text))),
        Some(Value::Number(number)) => {
            let whole = number.as_i64().map(|number| Some(TaskId::Number(number)));
            whole.ok_or_else(|| format!("task_id must be a string or a whole number, not {number}"))
        }
        Some(other) => Err(format!("task_id must be a string or a whole number, not {}", kind(&other))),
    }
}

/// A number as the answer is common and unmistakable; its text is the answer.
fn answer(value: Option<Value>) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(other) => Err(format!("definite_answer must be a string or null, not {}", kind(&other))),
    }
}

/// The four forms a rubric may have, as one list.
fn rubric(reference: Value) -> Result<Vec<RubricItem>, String> {
    match reference {
        Value::String(description) => Ok(vec![item(description, 1)]),
        Value::Array(list) => {
            let mut items = Vec::with_capacity(list.len());
            for (index, entry) in list.into_iter().enumerate() {
                let place = format!("evaluator_reference[{index}]");
                match entry {
                    Value::String(description) => items.push(item(description, 1)),
                    Value::Object(fields) => items.extend(rubric_entry(fields, &place)?),
                    other => {
                        return Err(format!("{place} must be a string or an object, not {}", kind(&other)));
                    }
                }
            }
            Ok(items)
        }
        other => Err(format!("evaluator_reference must be a string or a list, not {}", kind(&other))),
    }
}

fn item(description: String, difficulty: i64) -> RubricItem {
    RubricItem { description, difficulty }
}

/// `{"description","difficulty"}`, or a group of facts.
fn rubric_entry(mut fields: Map<String, Value>, place: &str) -> Result<Vec<RubricItem>, String> {
    let within = |reason: String| format!("{place}.{reason}");
    let difficulty = whole(fields.shift_remove("difficulty"), "difficulty").map_err(within)?.unwrap_or(1);
    let description = text(&mut fields, "description").map_err(within)?;
    let Some(facts) = fields.shift_remove("facts") else { return Ok(vec![item(description, difficulty)]) };
    let Value::Array(facts) = facts else {
        return Err(within(format!("facts must be a list of strings, not {}", kind(&facts))));
    };
    let id = match fields.shift_remove("id") {
        Some(Value::String(id)) => id,
        Some(Value::Number(id)) => id.to_string(),
        _ => return Err(within("id is missing; a group needs one".into())),
    };
    let fact = |fact: Value| match fact {
        Value::String(fact) => Ok(item(format!("[Group {id}: {description}] {fact}"), difficulty)),
        other => Err(within(format!("facts must be strings, not {}", kind(&other)))),
    };
    facts.into_iter().map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(changes: &Value) -> Result<Task, String> {
        let mut base = json!({
            "task_id": 7, "task_name": "Find a lamp", "website": "www.shop.example", "domain": "Shopping",
            "subdomain": "Furniture", "difficulty": 2, "evaluator_reference": "A lamp is shown",
            "definite_answer": null,
        });
        for (key, value) in changes.as_object().unwrap() {
            if value == "REMOVE" {
                base.as_object_mut().unwrap().remove(key);
            } else {
                base[key] = value.clone();
            }
        }
        parse(base.to_string().as_bytes())
    }

    fn rubric_of(reference: &Value) -> Vec<(String, i64)> {
        let task = task(&json!({ "evaluator_reference": reference })).unwrap();
        task.evaluator_reference.into_iter().map(|item| (item.description, item.difficulty)).collect()
    }

    #[test]
    fn a_task_is_read_whole_and_unknown_fields_are_kept() {
        let got = task(&json!({"source": {"set": "v2"}, "attempt_level": 1, "definite_answer": 42})).unwrap();
        assert_eq!(got.website, "https://www.shop.example");
        assert_eq!(got.task_id, Some(TaskId::Number(7)));
        assert_eq!((got.difficulty, got.attempt_level), (2, 1));
        assert_eq!(got.reference_answer.as_deref(), Some("42"));
        assert_eq!(Value::Object(got.extra), json!({"source": {"set": "v2"}}));
    }

    #[test]
    fn the_rubric_has_one_form_whatever_it_was_written_as() {
        let pair = |text: &str, difficulty| (text.to_owned(), difficulty);
        assert_eq!(rubric_of(&json!("one")), [pair("one", 1)]);
        assert_eq!(rubric_of(&json!(["one", "two"])), [pair("one", 1), pair("two", 1)]);
        assert_eq!(rubric_of(&json!([{"description": "d", "difficulty": 4}])), [pair("d", 4)]);
        assert_eq!(
            rubric_of(
                &json!([{"id": 1, "description": "Prices", "facts": ["a", "b"]}, {"id": "x", "description": "Y", "facts": ["c"]}])
            ),
            [pair("[Group 1: Prices] a", 1), pair("[Group 1: Prices] b", 1), pair("[Group x: Y] c", 1)]
        );
        assert_eq!(rubric_of(&json!([])), []);
    }

    #[test]
    fn optional_fields_may_be_left_out() {
        let got =
            task(&json!({"task_id": "REMOVE", "definite_answer": "REMOVE", "difficulty": 3.0})).unwrap();
        assert_eq!((got.task_id, got.reference_answer, got.difficulty), (None, None, 3));
        let judged_by_answer = json!({"evaluator_reference": "REMOVE", "definite_answer": "blue"});
        assert!(task(&judged_by_answer).unwrap().evaluator_reference.is_empty());
    }

    #[test]
    fn what_is_no_task_is_explained() {
        let cases = [
            (json!({"task_name": "REMOVE"}), "task_name is missing; it must be a string"),
            (json!({"task_name": "  "}), "task_name is empty"),
            (json!({"domain": "REMOVE"}), "domain is missing"),
            (json!({"subdomain": 3}), "subdomain must be a string, not a number"),
            (json!({"website": ""}), "website \"\" is not a web address"),
            (json!({"website": "two words.com"}), "is not a web address"),
            (json!({"website": "about:blank"}), "is not a web address"),
            (json!({"difficulty": "REMOVE"}), "difficulty is missing"),
            (json!({"difficulty": 0}), "difficulty must be 1 or more, not 0"),
            (json!({"difficulty": 1.5}), "difficulty must be a whole number, not 1.5"),
            (json!({"difficulty": "3"}), "difficulty must be a whole number, not a string"),
            (json!({"evaluator_reference": "REMOVE"}), "no definite_answer to judge by"),
            (json!({"evaluator_reference": 5}), "must be a string or a list, not a number"),
            (json!({"evaluator_reference": [5]}), "evaluator_reference[0] must be a string or an object"),
            (
                json!({"evaluator_reference": ["a", {"difficulty": 1}]}),
                "evaluator_reference[1].description is missing",
            ),
            (json!({"evaluator_reference": [{"description": "d", "facts": ["x"]}]}), "[0].id is missing"),
            (
                json!({"evaluator_reference": [{"id": 1, "description": "d", "facts": [1]}]}),
                "facts must be strings",
            ),
            (json!({"definite_answer": ["a"]}), "definite_answer must be a string or null, not a list"),
            (json!({"task_id": 1.5}), "task_id must be a string or a whole number"),
            (json!({"task_id": true}), "task_id must be a string or a whole number"),
            (json!({"attempt_level": "x"}), "attempt_level must be a whole number"),
        ];
        for (changes, wanted) in cases {
            let got = task(&changes).unwrap_err();
            assert!(got.contains(wanted), "{changes}: {got}");
        }
        assert_eq!(parse(b"[1]").unwrap_err(), "a task is a JSON object, not a list");
        assert!(
            parse(b"{\"a\": ").unwrap_err().starts_with("not JSON: EOF while parsing a value, at column")
        );
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(line in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            drop(parse(&line));
        }
    }
}
