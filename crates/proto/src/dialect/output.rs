//! What is sent back to the model after a turn.

use serde_json::Value;

use super::{Call, Dialect, Form, Turn, anthropic, chat, gemini, openai, qwen, ui_tars};
use crate::page::TabInfo;

/// An encoded image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub media_type: &'static str,
    /// In base64.
    pub data: String,
}

impl Image {
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

/// The result of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallResult {
    /// Why the call failed, or why it was not carried out.
    pub error: Option<String>,
    /// What the call reports: a position, the text of the page.
    pub text: Option<String>,
    /// The image that the call asked for, if it is not the screenshot after the turn.
    pub image: Option<Image>,
}

/// The page after the turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageState {
    pub title: String,
    pub url: String,
    /// Empty if the session has a single page.
    pub tabs: Vec<TabInfo>,
}

impl Turn {
    /// Builds what has to be sent back: a message, or a list of items or messages; null after a message without calls.
    /// `results` has one result for each call.
    pub fn output(&self, results: &[CallResult], page: &PageState, screenshot: &Image) -> Value {
        let calls: Vec<(&Call, &CallResult)> = self.calls.iter().zip(results).collect();
        match (self.form, self.dialect) {
            (Form::Answer, _) => Value::Null,
            (Form::Chat, Dialect::OpenAi | Dialect::Anthropic | Dialect::Gemini | Dialect::Qwen) => {
                chat::output(&calls, page, screenshot)
            }
            (form, Dialect::OpenAi) => openai::output(&calls, page, screenshot, form == Form::Preview),
            (_, Dialect::Anthropic) => anthropic::output(&calls, page, screenshot),
            (form, Dialect::Gemini) => gemini::output(&calls, page, screenshot, form == Form::Interactions),
            (_, Dialect::Qwen) => qwen::output(&calls, screenshot),
            (_, Dialect::UiTars) => ui_tars::output(screenshot),
        }
    }
}
