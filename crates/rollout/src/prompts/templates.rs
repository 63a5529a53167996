//! A set of named templates: compiling, checking the variables they use, and rendering to the parts of a chat message.

use std::{collections::BTreeMap, path::PathBuf};

use client::chat::Part;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value};

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
            Some(unknown) => Err(self.reject(
                name,
                &format!("{name} uses the unknown variable `{unknown}`; it has {}", known.join(", ")),
            )),
        }
    }

    pub(super) fn render(&self, name: &str, context: Value) -> Result<String, PromptError> {
        let rendered = self.environment.get_template(name).and_then(|template| template.render(context));
        rendered
            .map(|text| text.trim_matches('\n').to_owned())
            .map_err(|error| PromptError::Render { name: name.to_owned(), reason: self.describe(&error) })
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

    fn invalid(&self, name: &str, error: &minijinja::Error) -> PromptError {
        self.reject(name, &self.describe(error))
    }

    /// Describes an error with the line in the file instead of the line in the section.
    fn describe(&self, error: &minijinja::Error) -> String {
        let name = error.name().unwrap_or_default();
        let before = self.origins.get(name).map_or(0, |origin| origin.lines_before);
        let line = error.line().map(|line| format!("line {}: ", line + before)).unwrap_or_default();
        let reason = match (error.kind(), error.detail()) {
            (ErrorKind::TemplateNotFound, _) => "it includes a template that does not exist".to_owned(),
            (kind, Some(detail)) => format!("{kind}: {detail}"),
            (kind, None) => kind.to_string(),
        };
        format!("{line}{reason}")
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
