//! The policy's side of an episode: builds the prompts, parses the model's replies, and translates actions into browser
//! commands. Pure functions without network or files; the chat client sends the messages.

mod action;
mod action_text;
mod arguments;
mod call_search;
mod conversation;
mod dialect;
mod headings;
mod lenient_json;
mod reply;
mod resolve;
mod sanitize;
mod think_block;
mod tool_call;
mod tool_definition;

pub use action::{ActionKey, text_form};
pub use conversation::{
    ConversationBuilder, HISTORY_WINDOW, build_conversation, build_conversation_with, describe_outcome,
};
pub use dialect::DialectOptions;
pub(crate) use dialect::parse_reply;
pub use reply::Reply;
pub use resolve::{
    ActionContext, ActionError, DEFAULT_WAIT_SECS, MAX_WAIT_SECS, ResolvedAction, grid_to_pixel,
};
pub(crate) use sanitize::{escape_markers, quote, single_line};
pub(crate) use think_block::split_thinking;
pub use tool_call::tool_name;
pub use tool_definition::{PromptOptions, tool_definition};
