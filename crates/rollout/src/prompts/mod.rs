//! The texts that policy and judge are asked with, as MiniJinja templates: the built-in ones, and those of a file or folder
//! of the user. Templates are checked when they are loaded, so that a run does not start with prompts that cannot work.

mod judge;
mod policy;
mod sample;
mod templates;

use std::path::PathBuf;

pub(crate) use judge::ActionLine;
pub use judge::{JudgePrompts, QuestionKind, QuestionVariables};
pub(crate) use policy::{OmittedStep, Turn};
pub use policy::{PolicyPrompts, PromptVariables};
pub use sample::sample_turn;

/// A built-in template file, by its path below the folder of an export.
pub type BuiltIn = (&'static str, &'static str);

/// Why templates cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("cannot read the prompt template {path}: {reason}", path = path.display())]
    Read { path: PathBuf, reason: String },
    #[error("the prompt template {path} cannot be used: {reason}", path = path.display())]
    Invalid { path: PathBuf, reason: String },
}

/// Returns all built-in templates, to be changed and used as `policy_config.prompt_template` and
/// `openai_config.prompt_templates`.
pub fn built_in() -> Vec<BuiltIn> {
    let mut files = vec![("policy.jinja", policy::BUILT_IN)];
    files.extend(policy::DIALECTS);
    files.extend(judge::BUILT_IN.iter().map(|(_, path, text)| (*path, *text)));
    files
}
