//! A policy that speaks a dialect of computer actions (`proto::dialect`): how its replies are read, what its actions look
//! like in trajectories, and the functions it can call.

mod action;
mod functions;
mod qwen_tool;
mod reply;

use proto::{
    command::Point,
    dialect::{Dialect, ParseOptions, Screen, Size, Version, coordinate_size},
};
use serde_json::Value;

pub(crate) use action::commands_of;
pub(crate) use reply::parse_reply;

/// The dialect of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DialectOptions {
    pub dialect: Dialect,
    pub version: Option<Version>,
    /// The size of the screenshots, which is that of the viewport.
    pub viewport: Size,
}

impl DialectOptions {
    /// Nobody can be asked during a run, so safety checks are acknowledged.
    fn parse_options(&self, cursor: Point) -> ParseOptions {
        let screen = Screen { viewport: self.viewport, display: self.viewport, cursor };
        ParseOptions { dialect: self.dialect, version: self.version, screen, acknowledge_safety_checks: true }
    }

    /// Returns the size of the coordinate system of the model.
    pub(crate) fn coordinate_size(&self) -> Size {
        coordinate_size(self.dialect, self.version, self.viewport)
    }

    /// Returns the functions for the field `tools` of a request; none for a dialect that describes them in its prompt.
    pub(crate) fn functions(&self) -> Option<Vec<Value>> {
        match self.dialect {
            Dialect::OpenAi => Some(functions::openai()),
            Dialect::Anthropic => Some(functions::anthropic(self.version)),
            Dialect::Gemini => Some(functions::gemini(self.version)),
            Dialect::Qwen | Dialect::UiTars => None,
        }
    }

    /// Returns the definition of the tool for the prompt.
    pub(crate) fn tool_definition(&self) -> String {
        match self.dialect {
            Dialect::Qwen => qwen_tool::definition(self.version, self.coordinate_size()).to_string(),
            _ => String::new(),
        }
    }
}
