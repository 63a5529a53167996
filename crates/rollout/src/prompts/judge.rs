//! The questions to the judge: one file for each, with the patterns that its reply is read by.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use client::chat::{Message, Part, Role};
use minijinja::Value;
use regex::Regex;
use serde::Serialize;

use super::{
    PromptError,
    templates::{Images, Origin, Templates},
};

/// The kinds of question, and the parts that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuestionKind {
    Keypoint,
    Blocking,
    Supported,
    RubricItem,
    Reference,
}

/// Name, path in an export, and text of the built-in templates.
pub(super) const BUILT_IN: [(&str, &str, &str); 8] = [
    ("system", "judge/system.jinja", include_str!("templates/judge/system.jinja")),
    ("keypoint", "judge/keypoint.jinja", include_str!("templates/judge/keypoint.jinja")),
    ("blocking", "judge/blocking.jinja", include_str!("templates/judge/blocking.jinja")),
    ("supported", "judge/supported.jinja", include_str!("templates/judge/supported.jinja")),
    ("rubric_item", "judge/rubric_item.jinja", include_str!("templates/judge/rubric_item.jinja")),
    ("reference", "judge/reference.jinja", include_str!("templates/judge/reference.jinja")),
    ("screenshots", "judge/screenshots.jinja", include_str!("templates/judge/screenshots.jinja")),
    ("verdict", "judge/verdict.jinja", include_str!("templates/judge/verdict.jinja")),
];

impl QuestionKind {
    const ALL: [Self; 5] =
        [Self::Keypoint, Self::Blocking, Self::Supported, Self::RubricItem, Self::Reference];

    const fn template(self) -> &'static str {
        match self {
            Self::Keypoint => "keypoint",
            Self::Blocking => "blocking",
            Self::Supported => "supported",
            Self::RubricItem => "rubric_item",
            Self::Reference => "reference",
        }
    }

    const fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Keypoint => &["task", "rubric", "screenshots"],
            Self::Blocking => &["task", "actions", "screenshots"],
            Self::Supported => &["task", "answer", "screenshots"],
            Self::RubricItem => &["task", "item", "answer", "screenshots"],
            Self::Reference => &["task", "reference", "answer", "screenshots"],
        }
    }

    /// The words that the built-in reading of a reply needs, so that the question must ask for them.
    const fn answer_format(self) -> &'static [&'static str] {
        match self {
            Self::Keypoint => &["YES", "NO"],
            Self::Blocking => &["Blocked:"],
            Self::Supported | Self::RubricItem | Self::Reference => &["Verdict:"],
        }
    }
}

/// An action of the agent, for the question about blocking.
#[derive(Debug, Serialize)]
pub(crate) struct ActionLine {
    pub(crate) step: usize,
    pub(crate) url: String,
    pub(crate) action: String,
}

/// The variables of a question. Texts of pages and of the agent must be quoted or escaped.
#[derive(Debug, Default, Serialize)]
pub struct QuestionVariables {
    pub(crate) task: String,
    pub(crate) rubric: Vec<String>,
    pub(crate) actions: Vec<ActionLine>,
    pub(crate) answer: String,
    pub(crate) item: String,
    pub(crate) reference: String,
    /// Step (from 0) and path of each screenshot.
    #[serde(skip)]
    pub(crate) screenshots: Vec<(usize, PathBuf)>,
}

#[derive(Serialize)]
struct Screenshot {
    step: usize,
    image: String,
}

#[derive(Serialize)]
struct Context<'a> {
    #[serde(flatten)]
    question: &'a QuestionVariables,
    screenshots: Vec<Screenshot>,
}

/// Regular expressions of a reply that says yes, and of one that says no.
#[derive(Clone, Debug)]
pub(crate) struct ReplyPatterns {
    yes: Regex,
    no: Regex,
}

impl ReplyPatterns {
    /// Returns the decision of the last match; `None` if nothing matches.
    pub(crate) fn read(&self, reply: &str) -> Option<bool> {
        let end_of_last = |pattern: &Regex| pattern.find_iter(reply).last().map(|found| found.end());
        match (end_of_last(&self.yes), end_of_last(&self.no)) {
            (None, None) => None,
            (yes, no) => Some(yes > no),
        }
    }
}

/// The questions to the judge.
#[derive(Debug)]
pub struct JudgePrompts {
    templates: Templates,
    patterns: HashMap<QuestionKind, ReplyPatterns>,
}

impl Default for JudgePrompts {
    fn default() -> Self {
        let mut templates = Templates::new();
        for (name, path, text) in BUILT_IN {
            let added = templates.add(name, text, Origin { path: PathBuf::from(path), lines_before: 0 });
            debug_assert!(added.is_ok(), "{added:?}");
        }
        Self { templates, patterns: HashMap::new() }
    }
}

impl JudgePrompts {
    /// Reads the templates of a folder. Questions without a file keep their built-in text.
    pub fn load(folder: &Path) -> Result<Self, PromptError> {
        let read_error = |path: &Path, error: std::io::Error| PromptError::Read {
            path: path.to_path_buf(),
            reason: error.to_string(),
        };
        let mut prompts = Self::default();
        let entries = std::fs::read_dir(folder).map_err(|error| read_error(folder, error))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| read_error(folder, error))?.path();
            if path.extension().is_some_and(|extension| extension == "jinja") {
                paths.push(path);
            }
        }
        let names: Vec<String> = BUILT_IN.iter().map(|(name, ..)| format!("{name}.jinja")).collect();
        if paths.is_empty() {
            let reason = format!("it has none of the files {}", names.join(", "));
            return Err(PromptError::Invalid { path: folder.to_path_buf(), reason });
        }
        for path in paths {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            if !BUILT_IN.iter().any(|(name, ..)| *name == stem) {
                let reason = format!("it is none of {}", names.join(", "));
                return Err(PromptError::Invalid { path, reason });
            }
            let source = std::fs::read_to_string(&path).map_err(|error| read_error(&path, error))?;
            prompts.templates.add(&stem, &source, Origin { path, lines_before: 0 })?;
        }
        prompts.check()?;
        Ok(prompts)
    }

    fn check(&mut self) -> Result<(), PromptError> {
        self.templates.check_variables("system", &[])?;
        self.templates.check_variables("verdict", &[])?;
        self.templates.check_variables("screenshots", &["screenshots"])?;
        for question in QuestionKind::ALL {
            self.templates.check_variables(question.template(), question.variables())?;
            self.read_patterns(question)?;
            self.check_question(question)?;
        }
        Ok(())
    }

    fn read_patterns(&mut self, question: QuestionKind) -> Result<(), PromptError> {
        let name = question.template();
        let read = |variable: &str| {
            let text = self.templates.exported(name, variable, sample().context(&mut Images::new()))?;
            let compile = |text: String| {
                Regex::new(&text).map_err(|error| {
                    self.templates.reject(name, &format!("the pattern `{variable}`: {error}"))
                })
            };
            text.map(compile).transpose()
        };
        match (read("yes")?, read("no")?) {
            (None, None) => {}
            (Some(yes), Some(no)) => {
                self.patterns.insert(question, ReplyPatterns { yes, no });
            }
            _ => {
                return Err(self.templates.reject(name, "it sets only one of the patterns `yes` and `no`"));
            }
        }
        Ok(())
    }

    /// Rejects a question without screenshots, and one that does not ask for a reply that can be read.
    fn check_question(&self, question: QuestionKind) -> Result<(), PromptError> {
        let name = question.template();
        let messages = self.ask(question, &sample())?;
        let parts = || messages.iter().flat_map(|message| &message.content);
        let has_image = parts().any(|part| matches!(part, Part::Image(_)));
        if !has_image && question != QuestionKind::Reference {
            return Err(self.templates.reject(name, "it does not show the screenshots"));
        }
        let says = |word: &str| parts().any(|part| matches!(part, Part::Text(text) if text.contains(word)));
        let wanted = question.answer_format();
        if self.patterns.contains_key(&question) || wanted.iter().all(|word| says(word)) {
            return Ok(());
        }
        let reason = format!(
            "it does not say how to answer: ask for {}, or set the patterns `yes` and `no`",
            wanted.join(" or ")
        );
        Err(self.templates.reject(name, &reason))
    }

    /// Returns the messages that ask a question.
    pub fn ask(
        &self,
        question: QuestionKind,
        variables: &QuestionVariables,
    ) -> Result<Vec<Message>, PromptError> {
        let mut images = Images::new();
        let context = variables.context(&mut images);
        let text = self.templates.render(question.template(), context)?;
        let system = self.templates.render("system", Value::UNDEFINED)?;
        Ok(vec![
            Message::text(Role::System, system),
            Message { role: Role::User, content: images.parts(&text) },
        ])
    }

    /// Returns the patterns that replies to a question are read by, if its template sets them.
    pub(crate) fn patterns(&self, question: QuestionKind) -> Option<&ReplyPatterns> {
        self.patterns.get(&question)
    }

    /// Returns the messages of all questions on a sample, with their names.
    pub fn sample(&self) -> Result<Vec<(&'static str, Vec<Message>)>, PromptError> {
        QuestionKind::ALL
            .iter()
            .map(|question| Ok((question.template(), self.ask(*question, &sample())?)))
            .collect()
    }
}

impl QuestionVariables {
    fn context(&self, images: &mut Images) -> Value {
        let screenshots = self
            .screenshots
            .iter()
            .map(|(step, path)| Screenshot { step: step + 1, image: images.placeholder(path.clone()) });
        Value::from_serialize(Context { question: self, screenshots: screenshots.collect() })
    }
}

/// A question with a value for every variable.
fn sample() -> QuestionVariables {
    QuestionVariables {
        task: "Find the opening hours of the library.".to_owned(),
        rubric: vec!["The page with the opening hours was opened".to_owned()],
        actions: vec![ActionLine {
            step: 1,
            url: "https://library.example/".to_owned(),
            action: "Click [500, 120]".to_owned(),
        }],
        answer: "\n> It opens at 9.".to_owned(),
        item: "The page with the opening hours was opened".to_owned(),
        reference: "9 to 17".to_owned(),
        screenshots: vec![(0, PathBuf::from("step_000.png"))],
    }
}
