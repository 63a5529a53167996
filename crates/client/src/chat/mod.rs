//! The client of an OpenAI-compatible chat server: vLLM for the policy, any such service for the judge. Limits concurrent
//! requests, time and response size, retries by kind of error, and sends images as file URLs or inside the request.

mod call_gate;
mod client;
mod completion;
mod error;
mod images;
mod message;
mod preflight;
mod request;

pub use call_gate::CallGate;
pub use client::{ModelClient, ModelOptions};
pub use completion::{Completion, Usage};
pub use error::ModelError;
pub use images::Images;
pub use message::{Message, Part, Role, file_url, raw_prompt, to_json};
pub use preflight::ListedModel;
pub use request::ChatRequest;
