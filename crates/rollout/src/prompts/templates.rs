//! A set of named templates: compiling, checking the variables they use, and rendering to the parts of a chat message.

use std::{collections::BTreeMap, error::Error, path::PathBuf};

use client::chat::Part;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use super::PromptError;

/// Where the source of a template is, for messages about it.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) path: PathBuf,
    /// Lines of the file before the template.
    pub(super) lines_before: usize,
}

#[derive(Debug)]
pub(super) struct Templates {
    environment: Environment<'static>,
    origins: BTreeMap<String, Origin>,
}

impl Templates {
    pub(super) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        Self { environment, origins: BTreeMap::new() }
    }

    /// Adds a template, or replaces one of the same name.
    pub(super) fn add(&mut self, name: &str, source: &str, mut origin: Origin) -> Result<(), PromptError> {
        let blank = source.len() - source.trim_start().len();
        origin.lines_before += source[..blank].matches('\n').count();
        self.origins.insert(name.to_owned(), origin);
        let added = self.environment.add_template_owned(name.to_owned(), source.trim().to_owned());
        added.map_err(|error| self.invalid(name, &error))
    }

    /// Rejects variables other than `known`, also in parts that a sample does not reach.
    pub(super) fn check_variables(&self, name: &str, known: &[&str]) -> Result<(), PromptError> {
        let template = self.environment.get_template(name).map_err(|error| self.invalid(name, &error))?;
        let is_global = |variable: &str| self.environment.globals().any(|(global, _)| global == variable);
        let mut used: Vec<String> = template.undeclared_variables(false).into_iter().collect();
        used.sort();
        match used.iter().find(|variable| !known.contains(&variable.as_str()) && !is_global(variable)) {
            None => Ok(()),
            Some(unknown) => {
                let is_here = |line: &str| {
                    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == unknown)
                };
                let line = template.source().lines().position(is_here).unwrap_or_default() + 1;
                let known = if known.is_empty() { "no variables".to_owned() } else { known.join(", ") };
                let line = line + self.lines_before(name);
                Err(self
                    .reject(name, &format!("line {line}: unknown variable `{unknown}`; {name} has {known}")))
            }
        }
    }

    pub(super) fn render(&self, name: &str, context: Value) -> Result<String, PromptError> {
        let rendered = self.environment.get_template(name).and_then(|template| template.render(context));
        rendered.map(|text| text.trim_matches('\n').to_owned()).map_err(|error| self.invalid(name, &error))
    }

    /// Returns the value of a variable that the template sets at its top level.
    pub(super) fn exported(
        &self,
        name: &str,
        variable: &str,
        context: Value,
    ) -> Result<Option<String>, PromptError> {
        let template = self.environment.get_template(name).map_err(|error| self.invalid(name, &error))?;
        let rendered = template.render_captured(context).map_err(|error| self.invalid(name, &error))?;
        let state = rendered.state();
        if !state.exports().contains(&variable) {
            return Ok(None);
        }
        let value = state.lookup(variable);
        Ok(value.as_ref().and_then(|value| value.as_str()).map(str::to_owned))
    }

    /// Returns an error about a template.
    pub(super) fn reject(&self, name: &str, reason: &str) -> PromptError {
        let path = self.origins.get(name).map(|origin| origin.path.clone()).unwrap_or_default();
        PromptError::Invalid { path, reason: reason.to_owned() }
    }

    fn lines_before(&self, name: &str) -> usize {
        self.origins.get(name).map_or(0, |origin| origin.lines_before)
    }

    /// Returns an error with file and line of its cause, which may be in an included template.
    fn invalid(&self, name: &str, error: &minijinja::Error) -> PromptError {
        let mut cause = error;
        while let Some(inner) = cause.source().and_then(|inner| inner.downcast_ref::<minijinja::Error>()) {
            cause = inner;
        }
        let place =
            cause.name().filter(|name| self.origins.contains_key(*name)).map(|name| (name, cause.line()));
        let (name, line) = place.unwrap_or_else(|| (error.name().unwrap_or(name), error.line()));
        let line = line.map(|line| format!("line {}: ", line + self.lines_before(name))).unwrap_or_default();
        let reason = match cause.detail() {
            Some(detail) => format!("{}: {detail}", cause.kind()),
            None => cause.kind().to_string(),
        };
        self.reject(name, &format!("{line}{reason}"))
    }
}

/// The images of a message. A template places an image by its placeholder.
#[derive(Debug)]
pub(super) struct Images {
    /// Unknown to pages and models, so that their text cannot contain a placeholder.
    nonce: String,
    paths: Vec<PathBuf>,
}

impl Images {
    pub(super) fn new() -> Self {
        Self { nonce: uuid::Uuid::new_v4().simple().to_string(), paths: Vec::new() }
    }

    /// Returns the placeholder of an image; an empty text if there is none.
    pub(super) fn placeholder(&mut self, path: impl Into<PathBuf>) -> String {
        let path = path.into();
        if path.as_os_str().is_empty() {
            return String::new();
        }
        self.paths.push(path);
        format!("[image {} {}]", self.nonce, self.paths.len() - 1)
    }

    /// Splits a rendered text at the placeholders.
    pub(super) fn parts(&self, text: &str) -> Vec<Part> {
        let start = format!("[image {} ", self.nonce);
        let mut parts = Vec::new();
        let push_text = |parts: &mut Vec<Part>, text: &str| {
            let text = text.trim_matches('\n');
            if !text.is_empty() {
                parts.push(Part::Text(text.to_owned()));
            }
        };
        let mut pieces = text.split(start.as_str());
        push_text(&mut parts, pieces.next().unwrap_or_default());
        for piece in pieces {
            let (number, rest) = piece.split_once(']').unwrap_or((piece, ""));
            let path = number.parse::<usize>().ok().and_then(|number| self.paths.get(number));
            parts.extend(path.cloned().map(Part::Image));
            push_text(&mut parts, rest);
        }
        parts
    }
}
