//! Parses one line of a task file and reports every defect of a line that is not a task.

use proto::trajectory::{RubricItem, Task, TaskId};
use serde_json::{Map, Value};

use crate::{episode::SETUP_FIELD, judge::program, session_options};

use super::{
    defects::LineDefects,
    fields::{self, kind, string},
    rubric,
};

/// A parsed line.
pub(super) struct ParsedLine {
    pub(super) task: Result<Task, LineDefects>,
    /// The task's id, also if the line has defects elsewhere.
    pub(super) task_id: Option<TaskId>,
}

/// Parses a task, or returns everything that is wrong with the line.
pub fn parse(line: &[u8]) -> Result<Task, LineDefects> {
    parse_with_id(line).task
}

pub(super) fn parse_with_id(line: &[u8]) -> ParsedLine {
    let not_a_task = |reason: String| ParsedLine { task: Err(reason.into()), task_id: None };
    match serde_json::from_slice(line) {
        Ok(Value::Object(fields)) => parse_fields(fields),
        Ok(value) => not_a_task(format!("a task is a JSON object, not {}", kind(&value))),
        Err(error) => not_a_task(format!("not JSON: {}", without_line_number(&error))),
    }
}

fn parse_fields(mut fields: Map<String, Value>) -> ParsedLine {
    let mut defects = LineDefects::default();
    check_session(&fields, &mut defects);
    check_programs(&fields, &mut defects);
    let task = Task {
        task_name: defects.check(fields::task_name(&mut fields)),
        evaluator_reference: evaluator_reference(&mut fields, &mut defects),
        reference_answer: defects.check(fields::definite_answer(fields.shift_remove("definite_answer"))),
        domain: defects.check(string(&mut fields, "domain")),
        subdomain: defects.check(string(&mut fields, "subdomain")),
        website: defects.check(fields::website(&mut fields)),
        difficulty: defects.check(fields::difficulty(fields.shift_remove("difficulty"))),
        attempt_level: defects
            .check(fields::integer(fields.shift_remove("attempt_level"), "attempt_level"))
            .unwrap_or(0),
        task_id: defects.check(fields::task_id(fields.shift_remove("task_id"))),
        max_steps: 0,
        trajectory_index: 0,
        extra: fields,
    };
    let task_id = task.task_id.clone();
    ParsedLine { task: if defects.is_empty() { Ok(task) } else { Err(defects) }, task_id }
}

/// Checks the session options of the task, if it has any.
fn check_session(fields: &Map<String, Value>, defects: &mut LineDefects) {
    match fields.get(session_options::FIELD) {
        None | Some(Value::Null) => {}
        Some(Value::Object(options)) => {
            if let Err(reason) = session_options::check(options) {
                defects.add(format!("session: {reason}"));
            }
        }
        Some(other) => {
            defects.add(format!("session must be an object of session options, not {}", kind(other)));
        }
    }
}

/// Checks the task's own checks and its setup script, if it has any.
fn check_programs(fields: &Map<String, Value>, defects: &mut LineDefects) {
    let checks = fields.get(program::FIELD).filter(|field| !field.is_null()).map(program::parse_checks);
    if let Some(Err(reason)) = checks {
        defects.add(reason);
    }
    match fields.get(SETUP_FIELD) {
        None | Some(Value::Null | Value::String(_)) => {}
        Some(other) => defects.add(format!("setup must be JavaScript as a string, not {}", kind(other))),
    }
}

/// Reads the rubric, which may be missing if there is a definite answer or a check.
fn evaluator_reference(fields: &mut Map<String, Value>, defects: &mut LineDefects) -> Vec<RubricItem> {
    let has = |name: &str| fields.get(name).is_some_and(|field| !field.is_null());
    let has_answer = has("definite_answer") || has(program::FIELD);
    match fields.shift_remove("evaluator_reference") {
        None | Some(Value::Null) if has_answer => Vec::new(),
        None | Some(Value::Null) => {
            defects.add("evaluator_reference is missing, and there is no definite_answer to judge by and no judge field either");
            Vec::new()
        }
        Some(reference) => rubric::parse(reference, defects),
    }
}

/// Formats a JSON error without the line number, which is always 1 and would be mistaken for the line of the file.
fn without_line_number(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", ", at column ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(changes: &Value) -> Result<Task, LineDefects> {
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
    fn unknown_fields_are_kept() {
        let got = task(&json!({"source": {"set": "v2"}, "attempt_level": 1, "definite_answer": 42})).unwrap();
        assert_eq!(got.website, "https://www.shop.example");
        assert_eq!(got.task_id, Some(TaskId::Number(7)));
        assert_eq!((got.difficulty, got.attempt_level), (2, 1));
        assert_eq!(got.reference_answer.as_deref(), Some("42"));
        assert_eq!(Value::Object(got.extra), json!({"source": {"set": "v2"}}));
    }

    #[test]
    fn every_rubric_form_gives_the_same_items() {
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
    fn optional_fields_may_be_missing() {
        let got =
            task(&json!({"task_id": "REMOVE", "definite_answer": "REMOVE", "difficulty": 3.0})).unwrap();
        assert_eq!((got.task_id, got.reference_answer, got.difficulty), (None, None, 3));
        let judged_by_answer = json!({"evaluator_reference": "REMOVE", "definite_answer": "blue"});
        assert!(task(&judged_by_answer).unwrap().evaluator_reference.is_empty());
        let judged_by_check = json!({"evaluator_reference": "REMOVE", "judge": {"url": "http://a.test/*"}});
        assert!(task(&judged_by_check).unwrap().extra.contains_key("judge"));
    }

    #[test]
    fn each_kind_of_defect_is_explained() {
        let cases = [
            (json!({"task_name": "REMOVE"}), "task_name is missing (a string is required)"),
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
            (json!({"judge": {"script": "1"}}), "judge.script is not a check"),
            (json!({"setup": ["x"]}), "setup must be JavaScript as a string, not a list"),
            (json!({"attempt_level": "x"}), "attempt_level must be a whole number"),
        ];
        for (changes, wanted) in cases {
            let got = task(&changes).unwrap_err().to_string();
            assert!(got.contains(wanted), "{changes}: {got}");
            assert_eq!(got.split("; ").count(), 1, "{changes}: {got}");
        }
        assert_eq!(parse(b"[1]").unwrap_err().to_string(), "a task is a JSON object, not a list");
        let truncated = parse(b"{\"a\": ").unwrap_err().to_string();
        assert!(truncated.starts_with("not JSON: EOF while parsing a value, at column"), "{truncated}");
    }

    #[test]
    fn all_defects_of_a_line_are_reported() {
        let cases = [
            (
                json!({"task_name": "", "difficulty": 0, "website": "two words.com"}),
                vec![
                    "task_name is empty",
                    "website \"two words.com\" is not a web address",
                    "difficulty must be 1 or more, not 0",
                ],
            ),
            (
                json!({"domain": "REMOVE", "subdomain": 3, "task_id": true, "attempt_level": "x"}),
                vec![
                    "domain is missing (a string is required)",
                    "subdomain must be a string, not a number",
                    "attempt_level must be a whole number, not a string",
                    "task_id must be a string or a whole number, not true or false",
                ],
            ),
            (
                json!({"evaluator_reference": [5, {"difficulty": "x", "facts": [1, "a"]}], "definite_answer": []}),
                vec![
                    "evaluator_reference[0] must be a string or an object, not a number",
                    "evaluator_reference[1].difficulty must be a whole number, not a string",
                    "evaluator_reference[1].description is missing (a string is required)",
                    "evaluator_reference[1].id is missing (a group of facts needs one)",
                    "evaluator_reference[1].facts must be strings, not a number",
                    "definite_answer must be a string or null, not a list",
                ],
            ),
            (
                json!({"evaluator_reference": "REMOVE", "definite_answer": ["a"]}),
                vec!["definite_answer must be a string or null, not a list"],
            ),
        ];
        for (changes, wanted) in cases {
            assert_eq!(task(&changes).unwrap_err().to_string(), wanted.join("; "), "{changes}");
        }
    }

    #[test]
    fn many_defects_of_a_line_are_counted() {
        let got = task(&json!({"evaluator_reference": vec![0; 1000]})).unwrap_err().to_string();
        assert!(
            got.contains("evaluator_reference[9] ") && !got.contains("evaluator_reference[10] "),
            "{got}"
        );
        assert!(got.ends_with("; … and 990 more defects"), "{got}");
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(line in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            drop(parse(&line));
        }
    }
}
