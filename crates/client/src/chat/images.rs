//! How pictures reach the model: by the address of a file the server can read, or inside the request.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::Value;

use super::{ChatRequest, Message, ModelError, message};
use crate::http;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Images {
    /// Files for a server on this machine, until it turns out that it cannot read them; else inside the request.
    Auto,
    File,
    Data,
}

/// The way in use, and whether it may still change.
#[derive(Debug)]
pub(super) struct Carrier {
    files: AtomicBool,
    settled: AtomicBool,
}

impl Carrier {
    pub(super) fn new(images: Images, server: &str) -> Self {
        let files = match images {
            Images::File => true,
            Images::Data => false,
            Images::Auto => http::is_loopback(server),
        };
        Self { files: AtomicBool::new(files), settled: AtomicBool::new(images != Images::Auto) }
    }

    pub(super) fn prefers_files(&self) -> bool {
        self.files.load(Ordering::Relaxed)
    }

    /// No answer has shown yet which way works.
    pub(super) fn may_switch(&self) -> bool {
        !self.settled.load(Ordering::Relaxed)
    }

    pub(super) fn settle_on(&self, files: bool) {
        if !self.settled.swap(true, Ordering::Relaxed) {
            self.files.store(files, Ordering::Relaxed);
        }
    }
}

/// The request's JSON text.
pub(super) struct Body {
    pub(super) bytes: Bytes,
    /// Where in it the messages begin; they end where it does, but for one brace.
    messages: usize,
}

impl Body {
    /// The messages as they are sent.
    pub(super) fn messages(&self) -> &str {
        let end = self.bytes.len().saturating_sub(1);
        let text = self.bytes.get(self.messages..end).and_then(|text| std::str::from_utf8(text).ok());
        text.unwrap_or_default()
    }
}

/// Writes a request. Reading and encoding pictures happens on a thread that may block.
pub(super) async fn body(request: &ChatRequest, as_files: bool) -> Result<Body, ModelError> {
    if as_files || !request.has_images() {
        return written(request, &message::file_url);
    }
    let request = request.clone();
    let encoded = tokio::task::spawn_blocking(move || {
        let mut addresses: HashMap<PathBuf, String> = HashMap::new();
        for path in request.messages.iter().flat_map(Message::images) {
            if !addresses.contains_key(path) {
                addresses.insert(path.to_owned(), data_url(path)?);
            }
        }
        written(&request, &|path| addresses.get(path).cloned().unwrap_or_default())
    });
    encoded.await.unwrap_or_else(|problem| Err(ModelError::Setup(problem.to_string())))
}

fn written(request: &ChatRequest, address: &dyn Fn(&Path) -> String) -> Result<Body, ModelError> {
    let mut text = Value::Object(request.settings()).to_string().into_bytes();
    // The messages come last, before the brace that closes the settings: there is always a model among them.
    text.pop();
    text.extend_from_slice(b",\"messages\":");
    let messages = text.len();
    let written = message::Written { messages: &request.messages, address };
    serde_json::to_writer(&mut text, &written).map_err(|problem| ModelError::Setup(problem.to_string()))?;
    text.push(b'}');
    Ok(Body { bytes: text.into(), messages })
}

fn data_url(path: &Path) -> Result<String, ModelError> {
    let bytes = std::fs::read(path).map_err(|source| ModelError::Image { path: path.to_owned(), source })?;
    Ok(format!("data:{};base64,{}", media_type(&bytes), STANDARD.encode(&bytes)))
}

/// By content, not by name.
fn media_type(bytes: &[u8]) -> &'static str {
    match bytes {
        [0xff, 0xd8, ..] => "image/jpeg",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => "image/png",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{self, Message, Part, Role};

    #[tokio::test]
    async fn a_request_holds_the_prompt_as_it_is_kept() {
        let messages = vec![
            Message::text(Role::System, "be \"good\""),
            Message {
                role: Role::User,
                content: vec![Part::Text("look}".into()), Part::Image("/a b.png".into())],
            },
        ];
        let request = ChatRequest { model: "m".into(), messages: messages.clone(), ..ChatRequest::default() };
        let body = body(&request, true).await.unwrap();
        assert_eq!(body.messages(), chat::raw_prompt(&messages));
        let sent: Value = serde_json::from_slice(&body.bytes).unwrap();
        assert_eq!(sent["messages"], chat::to_json(&messages, &chat::file_url));
        assert_eq!(sent["model"], "m");
    }
}
