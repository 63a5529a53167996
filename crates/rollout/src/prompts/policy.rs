//! The prompts of the policy: one file with a section for each part of the conversation.

use std::path::{Path, PathBuf};

use client::chat::Part;
use minijinja::Value;
use proto::{
    InteractionMode,
    dialect::Dialect,
    trajectory::{Observation, Task},
};
use serde::Serialize;

use super::{
    PromptError,
    sample::sample_turn,
    templates::{Images, Origin, Templates},
};
use crate::{
    config::{ModelType, PromptVersion},
    policy::{PromptOptions, build_conversation_with, tool_definition, tool_name},
};

pub(super) const BUILT_IN: &str = include_str!("templates/policy.jinja");
const FUNCTIONS: &str = include_str!("templates/dialects/functions.jinja");
const QWEN: &str = include_str!("templates/dialects/qwen.jinja");
const UI_TARS: &str = include_str!("templates/dialects/ui_tars.jinja");

/// The built-in files for dialects, by their paths below the folder of an export.
pub(super) const DIALECTS: [super::BuiltIn; 3] = [
    ("dialects/functions.jinja", FUNCTIONS),
    ("dialects/qwen.jinja", QWEN),
    ("dialects/ui_tars.jinja", UI_TARS),
];

const COMMON: [&str; 11] = [
    "mode",
    "model_type",
    "prompt_version",
    "tool_name",
    "tool_definition",
    "task",
    "website",
    "dialect",
    "dialect_version",
    "display_width",
    "display_height",
];

/// The sections of the file, with the variables that only they have.
const SECTIONS: [(&str, &[&str]); 5] = [
    ("system", &[]),
    ("tools", &[]),
    ("summary", &["omitted"]),
    (
        "turn",
        &[
            "summary",
            "step",
            "max_steps",
            "problem",
            "outcome",
            "title",
            "url",
            "elements",
            "page_text",
            "screenshot",
            "is_current",
        ],
    ),
    ("reply", &["reply"]),
];

/// Variables of all sections.
#[derive(Clone, Debug, Serialize)]
pub struct PromptVariables {
    mode: &'static str,
    model_type: &'static str,
    prompt_version: &'static str,
    tool_name: &'static str,
    tool_definition: String,
    task: String,
    website: String,
    /// Empty for the built-in actions.
    dialect: &'static str,
    dialect_version: &'static str,
    /// The size of the model's coordinate system.
    display_width: u32,
    display_height: u32,
}

impl PromptVariables {
    /// `task` and `website` must be free of text that could be taken for a part of the prompt.
    pub(crate) fn new(options: PromptOptions, task: String, website: String) -> Self {
        let grid = proto::dialect::Size { width: 1000, height: 1000 };
        let display = options.dialect.map_or(grid, |dialect| dialect.coordinate_size());
        Self {
            mode: match options.mode {
                InteractionMode::Coordinates => "coordinates",
                InteractionMode::SetOfMarks => "set_of_marks",
            },
            model_type: match options.model_type {
                ModelType::Instruct => "instruct",
                ModelType::Think => "think",
            },
            prompt_version: match options.version {
                PromptVersion::Complete => "complete",
                PromptVersion::Vanilla => "vanilla",
            },
            tool_name: tool_name(options.mode),
            tool_definition: match options.dialect {
                Some(dialect) => dialect.tool_definition(),
                None => tool_definition(options.mode).to_string(),
            },
            task,
            website,
            dialect: options.dialect.map_or("", |options| options.dialect.as_str()),
            dialect_version: options
                .dialect
                .and_then(|options| options.version)
                .map_or("", proto::dialect::Version::as_str),
            display_width: display.width,
            display_height: display.height,
        }
    }
}

/// A step that is only summarized.
#[derive(Debug, Serialize)]
pub(crate) struct OmittedStep {
    pub(crate) number: usize,
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) action: String,
    pub(crate) changed: Option<bool>,
}

/// A user message.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Turn {
    pub(crate) summary: String,
    pub(crate) step: usize,
    pub(crate) max_steps: i64,
    pub(crate) problem: String,
    pub(crate) outcome: String,
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) elements: String,
    pub(crate) page_text: String,
    pub(crate) is_current: bool,
}

#[derive(Serialize)]
struct Omitted<'a> {
    omitted: &'a [OmittedStep],
}

#[derive(Serialize)]
struct PastReply<'a> {
    reply: &'a str,
}

#[derive(Serialize)]
struct TurnWithScreenshot<'a> {
    #[serde(flatten)]
    turn: &'a Turn,
    screenshot: String,
}

/// The prompts of the policy.
#[derive(Debug)]
pub struct PolicyPrompts {
    templates: Templates,
}

impl Default for PolicyPrompts {
    fn default() -> Self {
        Self::built_in(None)
    }
}

impl PolicyPrompts {
    /// Returns the prompts for a dialect, or those for the built-in actions.
    pub fn built_in(dialect: Option<Dialect>) -> Self {
        let own = match dialect {
            None => None,
            Some(Dialect::OpenAi | Dialect::Anthropic | Dialect::Gemini) => {
                Some(("functions.jinja", FUNCTIONS))
            }
            Some(Dialect::Qwen) => Some(("qwen.jinja", QWEN)),
            Some(Dialect::UiTars) => Some(("ui_tars.jinja", UI_TARS)),
        };
        let mut templates = Templates::new();
        for (name, text) in [("policy.jinja", BUILT_IN)].into_iter().chain(own) {
            for section in sections(text) {
                let origin = Origin { path: PathBuf::from(name), lines_before: section.lines_before };
                let added = templates.add(section.name, &section.text, origin);
                debug_assert!(added.is_ok(), "{added:?}");
            }
        }
        Self { templates }
    }

    /// Reads the sections of a file and checks them with these options. Sections that the file lacks keep their built-in
    /// text.
    pub fn load(path: &Path, options: PromptOptions) -> Result<Self, PromptError> {
        let read_error =
            |error: std::io::Error| PromptError::Read { path: path.to_path_buf(), reason: error.to_string() };
        let source = std::fs::read_to_string(path).map_err(read_error)?;
        let mut prompts = Self::built_in(options.dialect.map(|options| options.dialect));
        let found = sections(&source);
        let reject = |reason: String| PromptError::Invalid { path: path.to_path_buf(), reason };
        let names = || SECTIONS.map(|(name, _)| name).join(", ");
        if found.is_empty() {
            return Err(reject(format!(
                "it has no line such as {{# section: turn #}}; sections are {}",
                names()
            )));
        }
        for section in found {
            let Some((_, own)) = SECTIONS.iter().find(|(name, _)| *name == section.name) else {
                return Err(reject(format!("unknown section `{}`; sections are {}", section.name, names())));
            };
            let origin = Origin { path: path.to_path_buf(), lines_before: section.lines_before };
            prompts.templates.add(section.name, &section.text, origin)?;
            prompts.templates.check_variables(section.name, &[&COMMON[..], own].concat())?;
        }
        prompts.check(options, &reject)?;
        Ok(prompts)
    }

    /// Renders a sample and rejects prompts that no policy could work with.
    fn check(
        &self,
        options: PromptOptions,
        reject: &dyn Fn(String) -> PromptError,
    ) -> Result<(), PromptError> {
        let (task, history, current): (Task, _, Observation) = sample_turn(options.mode);
        let messages =
            build_conversation_with(self, options, &task, &history, &current, Some("Text of a page"))
                .map_err(|error| reject(error.to_string()))?;
        let has_image = |part: &Part| matches!(part, Part::Image(_));
        if !messages.last().is_some_and(|message| message.content.iter().any(has_image)) {
            return Err(reject("the section turn does not show {{ screenshot }}".to_owned()));
        }
        let asks_for_call = |part: &Part| matches!(part, Part::Text(text) if text.contains("<tool_call>") || text.contains(tool_name(options.mode)));
        let asked = messages.iter().filter(|message| message.role != client::chat::Role::Assistant);
        // The reply to a dialect has another form.
        if options.dialect.is_none() && !asked.flat_map(|message| &message.content).any(asks_for_call) {
            return Err(reject(
                "no section says how to answer: ask for a JSON object inside <tool_call> tags".to_owned(),
            ));
        }
        Ok(())
    }

    /// `common` are [`PromptVariables`].
    pub(crate) fn system(&self, common: &Value) -> Result<String, PromptError> {
        self.templates.render("system", common.clone())
    }

    pub(crate) fn summary(&self, common: &Value, omitted: &[OmittedStep]) -> Result<String, PromptError> {
        self.templates.render("summary", with_common(common, &Omitted { omitted }))
    }

    pub(crate) fn turn(
        &self,
        common: &Value,
        turn: &Turn,
        screenshot: &str,
    ) -> Result<Vec<Part>, PromptError> {
        let mut images = Images::new();
        let section = TurnWithScreenshot { turn, screenshot: images.placeholder(screenshot) };
        let text = self.templates.render("turn", with_common(common, &section))?;
        Ok(images.parts(&text))
    }

    pub(crate) fn reply(&self, common: &Value, reply: &str) -> Result<String, PromptError> {
        self.templates.render("reply", with_common(common, &PastReply { reply }))
    }
}

/// Adds the common variables to those of a section without copying them.
fn with_common(common: &Value, section: &impl Serialize) -> Value {
    minijinja::context! { ..Value::from_serialize(section), ..common.clone() }
}

struct Section<'a> {
    name: &'a str,
    text: String,
    lines_before: usize,
}

/// Splits a file at its lines `{# section: NAME #}`.
fn sections(source: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (number, line) in source.lines().enumerate() {
        if let Some(name) = section_name(line) {
            sections.push(Section { name, text: String::new(), lines_before: number + 1 });
        } else if let Some(section) = sections.last_mut() {
            section.text.extend([line, "\n"]);
        }
    }
    sections
}

fn section_name(line: &str) -> Option<&str> {
    let inner = line.trim().strip_prefix("{#")?.strip_suffix("#}")?;
    let inner = inner.trim_start_matches('-').trim_end_matches('-').trim();
    inner.strip_prefix("section:").map(str::trim)
}
