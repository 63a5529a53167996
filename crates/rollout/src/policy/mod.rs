//! The policy's side of an episode: builds the prompts, parses the model's replies, and translates actions into browser
//! commands. Pure functions without network or files; the chat client sends the messages.

mod arguments;
mod call;
mod conversation;
mod lenient;
mod neutral;
mod prompt;
mod reply;
mod step;
mod text_form;
mod thinking;
mod words;

pub use call::tool_name;
pub use conversation::{WINDOW, conversation, observed};
pub(crate) use neutral::{escape_markers, quote, single_line};
pub use prompt::{Prompting, definition};
pub use reply::Reply;
pub use step::{ActionError, DEFAULT_WAIT, LONGEST_WAIT, Scene, Step, pixel};
pub(crate) use thinking::split_thinking;
pub use words::ActionKey;
