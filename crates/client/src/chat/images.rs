//! How images are sent to the model: as the URL of a file that the server can read, or inside the request.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use proto::ImageFormat;
use serde_json::Value;

use super::{
    ChatRequest, Message, ModelError,
    message::{ImageWriter, MessageList, file_url},
};
use crate::http;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Images {
    /// File URLs for a server on this machine unless it cannot read them, otherwise data inside the request.
    Auto,
    File,
    Data,
}

/// The image mode in use, and whether it may still change.
#[derive(Debug)]
pub(super) struct ImageMode {
    uses_files: AtomicBool,
    is_settled: AtomicBool,
}

impl ImageMode {
    pub(super) fn new(images: Images, server: &str) -> Self {
        let uses_files = match images {
            Images::File => true,
            Images::Data => false,
            Images::Auto => http::is_loopback(server),
        };
        Self { uses_files: AtomicBool::new(uses_files), is_settled: AtomicBool::new(images != Images::Auto) }
    }

    pub(super) fn uses_files(&self) -> bool {
        self.uses_files.load(Ordering::Relaxed)
    }

    /// Returns whether no response has shown yet which mode works.
    pub(super) fn may_change(&self) -> bool {
        !self.is_settled.load(Ordering::Relaxed)
    }

    pub(super) fn settle(&self, uses_files: bool) {
        if !self.is_settled.swap(true, Ordering::Relaxed) {
            self.uses_files.store(uses_files, Ordering::Relaxed);
        }
    }
}

/// The JSON text of a request.
pub(super) struct Body {
    pub(super) bytes: Bytes,
    /// Where the messages begin. They end one brace before the end of the text.
    messages_start: usize,
}

impl Body {
    /// Returns the JSON text of the messages.
    pub(super) fn messages(&self) -> &str {
        let end = self.bytes.len().saturating_sub(1);
        let text = self.bytes.get(self.messages_start..end).and_then(|text| std::str::from_utf8(text).ok());
        text.unwrap_or_default()
    }
}

/// Serializes a request. Images are read and encoded on a blocking thread.
pub(super) async fn body(request: &ChatRequest, as_files: bool) -> Result<Body, ModelError> {
    if as_files || !request.has_images() {
        return serialize(request, &file_url);
    }
    let request = request.clone();
    let encoded = tokio::task::spawn_blocking(move || {
        let mut urls: HashMap<PathBuf, String> = HashMap::new();
        for path in request.messages.iter().flat_map(Message::images) {
            if !urls.contains_key(path) {
                urls.insert(path.to_owned(), data_url(path)?);
            }
        }
        serialize(&request, &|path| urls.get(path).cloned().unwrap_or_default())
    });
    encoded.await.unwrap_or_else(|error| Err(ModelError::Setup(error.to_string())))
}

fn serialize(request: &ChatRequest, image_url: &dyn Fn(&Path) -> String) -> Result<Body, ModelError> {
    let mut text = Value::Object(request.settings()).to_string().into_bytes();
    // The messages go last, in place of the closing brace. The settings always contain a model, so a comma fits.
    text.pop();
    text.extend_from_slice(b",\"messages\":");
    let messages_start = text.len();
    let images = ImageWriter { url: image_url, detail: request.image_detail };
    let messages = MessageList { messages: &request.messages, images };
    serde_json::to_writer(&mut text, &messages).map_err(|error| ModelError::Setup(error.to_string()))?;
    text.push(b'}');
    Ok(Body { bytes: text.into(), messages_start })
}

fn data_url(path: &Path) -> Result<String, ModelError> {
    let bytes = std::fs::read(path).map_err(|source| ModelError::Image { path: path.to_owned(), source })?;
    let media_type = ImageFormat::of(&bytes).unwrap_or_default().mime();
    Ok(format!("data:{media_type};base64,{}", STANDARD.encode(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{self, Message, Part, Role};

    #[tokio::test]
    async fn request_contains_the_stored_prompt() {
        let messages = vec![
            Message::text(Role::System, "be \"good\""),
            Message {
                role: Role::User,
                content: vec![Part::Text("look}".into()), Part::Image("/a_b.png".into())],
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
