//! Programs with placeholders in braces, such as `{model}`, which are filled in for each iteration.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A program with its arguments, or a line for the shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Template {
    Arguments(Vec<String>),
    /// Run by `/bin/sh -c`; values are quoted.
    Shell(String),
}

/// The values of placeholders.
pub type Values<'a> = &'a [(&'static str, String)];

/// A program that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub arguments: Vec<String>,
    pub variables: Vec<(String, String)>,
    pub directory: Option<PathBuf>,
}

impl Template {
    /// Fills in the placeholders.
    pub fn render(&self, values: Values<'_>) -> Result<Vec<String>, String> {
        match self {
            Self::Arguments(arguments) => {
                arguments.iter().map(|text| fill_in(text, values, str::to_owned)).collect()
            }
            Self::Shell(line) => {
                Ok(vec!["/bin/sh".to_owned(), "-c".to_owned(), fill_in(line, values, shell_quoted)?])
            }
        }
    }

    /// Checks the placeholders against the names that are known, and that there is a program.
    pub fn check(&self, known: &[&'static str]) -> Result<(), String> {
        let is_empty = match self {
            Self::Arguments(arguments) => arguments.first().is_none_or(|program| program.trim().is_empty()),
            Self::Shell(line) => line.trim().is_empty(),
        };
        if is_empty {
            return Err("names no program".to_owned());
        }
        let values: Vec<(&'static str, String)> = known.iter().map(|name| (*name, String::new())).collect();
        self.render(&values).map(drop)
    }
}

/// Replaces `{name}` by its value. `{{` and `}}` stand for braces.
pub fn fill_in(text: &str, values: Values<'_>, quoted: fn(&str) -> String) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(position);
        filled.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            filled.push_str(&from[..1]);
            rest = after;
            continue;
        }
        let Some((name, after)) = from.strip_prefix('{').and_then(|from| from.split_once('}')) else {
            return Err(format!(
                "has a brace without its counterpart in {text:?}; write {{{{ or }}}} for a brace itself"
            ));
        };
        let value = values.iter().find(|(known, _)| *known == name).ok_or_else(|| unknown(name, values))?;
        filled.push_str(&quoted(&value.1));
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn unknown(name: &str, values: Values<'_>) -> String {
    let known: Vec<String> = values.iter().map(|(known, _)| format!("{{{known}}}")).collect();
    format!(
        "has the unknown placeholder {{{name}}}; the placeholders here are {}, and {{{{ stands for a brace",
        known.join(" ")
    )
}

/// Quotes a text so that the shell reads it as one word.
fn shell_quoted(text: &str) -> String {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-' | ':' | '=');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl std::fmt::Display for Program {
    /// Shows the command as one could type it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut line = String::new();
        for (name, value) in &self.variables {
            let _ = write!(line, "{name}={} ", shell_quoted(value));
        }
        let words: Vec<String> = self.arguments.iter().map(|word| shell_quoted(word)).collect();
        write!(f, "{line}{}", words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<(&'static str, String)> {
        vec![("model", "/a b/it's".to_owned()), ("iteration", "3".to_owned())]
    }

    #[test]
    fn placeholders_are_filled_in() {
        let template =
            Template::Arguments(["train", "--model={model}", "{iteration}{{x}}"].map(str::to_owned).to_vec());
        assert_eq!(template.render(&values()).unwrap(), ["train", "--model=/a b/it's", "3{x}"]);
        let shell = Template::Shell("train {model} > log_{iteration}".to_owned());
        assert_eq!(
            shell.render(&values()).unwrap(),
            ["/bin/sh", "-c", r"train '/a b/it'\''s' > log_3"],
            "a value is one word for the shell"
        );
    }

    #[test]
    fn unknown_placeholder_is_refused_with_the_known_ones() {
        let template = Template::Arguments(vec!["train".to_owned(), "{modle}".to_owned()]);
        let reason = template.check(&["model", "iteration"]).unwrap_err();
        assert!(reason.contains("{modle}") && reason.contains("{model} {iteration}"), "{reason}");
        let reason = Template::Shell("train {".to_owned()).check(&["model"]).unwrap_err();
        assert!(reason.contains("brace without its counterpart"), "{reason}");
        assert!(Template::Arguments(Vec::new()).check(&[]).unwrap_err().contains("names no program"));
    }

    #[test]
    fn shown_command_can_be_typed() {
        let program = Program {
            arguments: ["run", "a b", ""].map(str::to_owned).to_vec(),
            variables: vec![("X".to_owned(), "1 2".to_owned())],
            directory: None,
        };
        assert_eq!(program.to_string(), "X='1 2' run 'a b' ''");
    }
}
