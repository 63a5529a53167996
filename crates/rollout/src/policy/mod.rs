//! The policy's side of an episode: what the model is told, what it answers, what that means for the browser.
//! Pure: no network, no files. The client that carries the messages is elsewhere.

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
pub(crate) use neutral::{line as one_line, neutral as plain_text, quoted};
pub use prompt::{Prompting, definition};
pub use reply::Reply;
pub use step::{ActionError, DEFAULT_WAIT, LONGEST_WAIT, Scene, Step, pixel};
pub(crate) use thinking::split as split_thoughts;
pub use words::ActionKey;
