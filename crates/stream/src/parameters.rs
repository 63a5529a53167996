//! The parameters of a request: from its query, or from a JSON object in its body. Unknown names are errors, so that a
//! misspelled one is not ignored.

use std::str::FromStr;

use serde_json::Value;

/// Names and values, each as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads the query and the body, which may be empty. Only the names in `accepted` are allowed, each once.
    pub(crate) fn read(query: &str, body: &[u8], accepted: &[&str]) -> Result<Self, String> {
        let mut pairs: Vec<(String, String)> =
            form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        pairs.extend(read_body(body)?);
        for (position, (name, _)) in pairs.iter().enumerate() {
            if !accepted.contains(&name.as_str()) {
                let accepted = if accepted.is_empty() { "none".to_owned() } else { accepted.join(", ") };
                return Err(format!("unknown parameter {name:?}; accepted: {accepted}"));
            }
            if pairs[..position].iter().any(|(earlier, _)| earlier == name) {
                return Err(format!("{name} is given twice"));
            }
        }
        Ok(Self(pairs))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Parses a parameter. `expected` completes the sentence "it must be …".
    pub(crate) fn parse<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, String> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("{name} is {text:?}; it must be {expected}"))
    }

    /// Reads a number of seconds up to `max`.
    pub(crate) fn seconds(&self, name: &str, max: u64) -> Result<Option<std::time::Duration>, String> {
        let expected = format!("a number of seconds from 0 to {max}");
        let Some(seconds) = self.parse::<f64>(name, &expected)? else { return Ok(None) };
        if (0.0..=max as f64).contains(&seconds) {
            return Ok(Some(std::time::Duration::from_secs_f64(seconds)));
        }
        Err(format!("{name} is {seconds}; it must be {expected}"))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.text(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1" | "") => Ok(true),
            Some(other) => Err(format!("{name} is {other:?}; it must be true or false")),
        }
    }
}

fn read_body(body: &[u8]) -> Result<Vec<(String, String)>, String> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
        return Err("the body must be a JSON object, or empty".to_owned());
    };
    let texts = fields.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| match value {
        Value::String(text) => Ok((name, text)),
        value @ (Value::Number(_) | Value::Bool(_)) => Ok((name, value.to_string())),
        _ => Err(format!("{name} must be text, a number or a boolean")),
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_and_body_are_read_the_same() {
        let accepted = ["deadline", "wait"];
        let query = Parameters::read("deadline=2.5&wait=true", b"", &accepted).unwrap();
        let body = Parameters::read("", b"{\"deadline\": 2.5, \"wait\": true}", &accepted).unwrap();
        assert_eq!(query, body);
        assert_eq!(query.seconds("deadline", 10).unwrap().unwrap().as_millis(), 2500);
        assert!(query.flag("wait").unwrap());
        let none = Parameters::read("", b" \n", &accepted).unwrap();
        assert_eq!((none.seconds("deadline", 10), none.flag("wait")), (Ok(None), Ok(false)));
    }

    #[test]
    fn invalid_parameters_are_named() {
        let accepted = ["deadline", "limit"];
        let table: [(&str, &[u8], &str); 7] = [
            ("dedline=1", b"", "unknown parameter \"dedline\"; accepted: deadline, limit"),
            ("deadline=1&deadline=2", b"", "deadline is given twice"),
            ("deadline=1", b"{\"deadline\": 1}", "deadline is given twice"),
            ("", b"[1]", "the body must be a JSON object, or empty"),
            ("", b"{\"deadline\": [1]}", "deadline must be text, a number or a boolean"),
            ("deadline=NaN", b"", "deadline is NaN; it must be a number of seconds from 0 to 60"),
            ("deadline=61", b"", "deadline is 61; it must be a number of seconds from 0 to 60"),
        ];
        for (query, body, message) in table {
            let read = Parameters::read(query, body, &accepted);
            let error = read.and_then(|parameters| parameters.seconds("deadline", 60).map(drop)).unwrap_err();
            assert_eq!(error, message);
        }
        let limit = Parameters::read("limit=-1", b"", &accepted).unwrap();
        let error = limit.parse::<u64>("limit", "a number of items").unwrap_err();
        assert_eq!(error, "limit is \"-1\"; it must be a number of items");
    }
}
