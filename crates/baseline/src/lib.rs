//! The built-in baseline policy: a rule-based web agent behind the chat API of vLLM. It reads the same conversation as a
//! model, except the images: task, page titles, URLs, numbered elements and page text, and compares their words. It has
//! no knowledge of any website or task, and gives the same reply to the same conversation.

mod action;
mod conversation;
mod decide;
mod goal;
mod memory;
mod nlp;
mod page;
mod server;
mod skills;
mod values;
mod wire;

pub use conversation::BadRequest;
pub use decide::{Reply, decide, reply};
pub use server::Server;
pub use wire::MODEL;
