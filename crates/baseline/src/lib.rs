//! The built-in baseline policy: a web agent of plain rules behind the chat API that vLLM speaks. It reads what a model
//! would get, the conversation, except the pictures: task, titles, addresses, numbered elements and page text; it goes
//! by the words they share. It knows no website and no task, and is the same for the same conversation every time.

mod action;
mod decide;
mod goal;
mod memory;
mod page;
mod server;
mod skills;
mod talk;
mod values;
mod wire;
mod words;

pub use decide::{Reply, decide, reply};
pub use server::Server;
pub use talk::BadRequest;
pub use wire::MODEL;
