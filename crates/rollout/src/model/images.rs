//! How pictures reach the model: by the address of a file the server can read, or inside the request.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{ChatRequest, ModelError};
use crate::{chat, config::ImageTransport, http};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Images {
    /// Files for a server on this machine, until it turns out that it cannot read them; else inside the request.
    Auto,
    File,
    Data,
}

impl From<ImageTransport> for Images {
    fn from(transport: ImageTransport) -> Self {
        match transport {
            ImageTransport::Auto => Self::Auto,
            ImageTransport::File => Self::File,
            ImageTransport::Data => Self::Data,
        }
    }
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

/// The request's JSON text. Reading and encoding pictures happens on a thread that may block.
pub(super) async fn body(request: &ChatRequest, as_files: bool) -> Result<Vec<u8>, ModelError> {
    if as_files || !request.has_images() {
        return Ok(written(request, &chat::file_url));
    }
    let request = request.clone();
    let encoded = tokio::task::spawn_blocking(move || {
        let mut addresses: HashMap<PathBuf, String> = HashMap::new();
        for path in request.messages.iter().flat_map(chat::Message::images) {
            if !addresses.contains_key(path) {
                addresses.insert(path.to_owned(), data_url(path)?);
            }
        }
        Ok(written(&request, &|path| addresses.get(path).cloned().unwrap_or_default()))
    });
    encoded.await.unwrap_or_else(|problem| Err(ModelError::Setup(problem.to_string())))
}

fn written(request: &ChatRequest, address: &dyn Fn(&Path) -> String) -> Vec<u8> {
    let mut fields = request.settings();
    fields.insert("messages".into(), chat::to_json(&request.messages, address));
    Value::Object(fields).to_string().into_bytes()
}

fn data_url(path: &Path) -> Result<String, ModelError> {
    let bytes =
        std::fs::read(path).map_err(|source| ModelError::Picture { path: path.to_owned(), source })?;
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
