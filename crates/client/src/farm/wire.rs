//! The shapes that travel between us and the farm, in JSON or MessagePack. Read forgivingly: the Python system is
//! looser about numbers and strings than ours.

use std::borrow::Cow;

use bytes::Bytes;
use proto::{
    ErrorCode, ImageFormat, InteractionMode,
    page::{PageMetadata, ScreenshotInfo},
};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value, json};

use super::ClientError;

/// A borrowed browser. Both parts are the farm's own words and are only sent back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    pub instance_id: String,
    pub node: String,
}

impl Lease {
    pub(super) fn read(body: &Value) -> Option<Self> {
        let word = |name: &str| match body.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        Some(Self { instance_id: word("instance_id")?, node: word("node")? })
    }
}

/// CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewport {
    pub width: u32,
    pub height: u32,
}

impl Viewport {
    pub(super) fn read(body: &Value) -> Option<Self> {
        let side = |name: &str| {
            let side = body.get(name)?.as_f64().filter(|side| *side >= 1.0 && *side <= 100_000.0)?;
            Some(side as u32)
        };
        Some(Self { width: side("width")?, height: side("height")? })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct FarmInfo {
    pub nodes: Vec<NodeInfo>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeInfo {
    pub url: String,
    pub hash: String,
    pub healthy: bool,
    pub capacity: u64,
    pub available: u64,
    pub instances: Vec<String>,
    pub starting: u64,
    pub dead: u64,
}

/// What to bring back from `/observe` and `/step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveOptions {
    pub mode: InteractionMode,
    pub format: ImageFormat,
    pub screenshot: bool,
    pub metadata: bool,
    pub ac_tree: bool,
    pub rects: bool,
}

impl ObserveOptions {
    /// What an episode needs each step.
    pub const fn whole(mode: InteractionMode) -> Self {
        let marks = matches!(mode, InteractionMode::SetOfMarks);
        Self {
            mode,
            format: ImageFormat::Png,
            screenshot: true,
            metadata: true,
            ac_tree: marks,
            rects: false,
        }
    }

    pub(super) fn to_json(self, lease: &Lease) -> Map<String, Value> {
        let parts = [
            ("screenshot", self.screenshot),
            ("metadata", self.metadata),
            ("ac_tree", self.ac_tree),
            ("rects", self.rects),
        ];
        let include: Vec<&str> = parts.iter().filter(|(_, wanted)| *wanted).map(|(name, _)| *name).collect();
        Map::from_iter([
            ("node".to_owned(), json!(lease.node)),
            ("instance_id".to_owned(), json!(lease.instance_id)),
            ("interaction_mode".to_owned(), json!(self.mode.as_str())),
            ("format".to_owned(), json!(self.format.as_str())),
            ("include".to_owned(), json!(include)),
        ])
    }
}

/// A screenshot as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screenshot {
    pub format: ImageFormat,
    pub width: u32,
    pub height: u32,
    /// Where it came as bytes, a part of the answer: most of that is the picture.
    pub data: Bytes,
}

#[derive(Deserialize)]
struct PictureWire<'a> {
    format: ImageFormat,
    #[serde(default)]
    width: u32,
    #[serde(default)]
    height: u32,
    #[serde(borrow, deserialize_with = "picture_bytes")]
    data: Cow<'a, [u8]>,
}

impl PictureWire<'_> {
    /// The picture in the answer it was read from.
    fn within(self, body: &Bytes) -> Screenshot {
        let Self { format, width, height, data } = self;
        let data = match data {
            Cow::Borrowed(part) => body.slice_ref(part),
            Cow::Owned(bytes) => bytes.into(),
        };
        Screenshot { format, width, height, data }
    }
}

/// The page after a step, or as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The command's answer.
    pub result: Option<Value>,
    /// The command failed, but the page was looked at.
    pub failure: Option<ClientError>,
    pub settled: bool,
    pub settle_ms: u64,
    pub screenshot: Option<Screenshot>,
    pub metadata: Option<PageMetadata>,
    pub ac_tree: Option<String>,
    pub screenshot_info: Option<Value>,
    /// The farm saw no difference to the picture before.
    pub unchanged: bool,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ObservedWire<'a> {
    result: Option<Value>,
    error: Option<FailureWire>,
    settled: bool,
    settle_ms: u64,
    #[serde(borrow)]
    screenshot: Option<PictureWire<'a>>,
    metadata: Option<PageMetadata>,
    ac_tree: Option<String>,
    screenshot_info: Option<Value>,
    unchanged: bool,
}

#[derive(Deserialize)]
struct FailureWire {
    #[serde(default)]
    code: String,
    #[serde(default)]
    detail: String,
}

impl Observation {
    /// Public for the fuzzer.
    #[doc(hidden)]
    pub fn read(body: &Bytes, content_type: &str) -> Result<Self, ClientError> {
        let unreadable =
            |reason: String| ClientError::Other(format!("an observation that cannot be read: {reason}"));
        let wire: ObservedWire<'_> = if content_type.contains("msgpack") {
            rmp_serde::from_slice(body).map_err(|problem| unreadable(problem.to_string()))?
        } else {
            serde_json::from_slice(body).map_err(|problem| unreadable(problem.to_string()))?
        };
        let screenshot = wire.screenshot.map(|picture| picture.within(body));
        if let Some(picture) = &screenshot {
            check_image(&picture.data, picture.format)?;
        }
        Ok(Self {
            result: wire.result,
            failure: wire.error.map(|failure| match ErrorCode::from_wire(&failure.code) {
                Some(code) => ClientError::of_code(code, failure.detail),
                None => ClientError::Other(failure.detail),
            }),
            settled: wire.settled,
            settle_ms: wire.settle_ms,
            screenshot,
            metadata: wire.metadata,
            ac_tree: wire.ac_tree,
            screenshot_info: wire.screenshot_info,
            unchanged: wire.unchanged,
        })
    }
}

/// A dead browser behind the Python system is a `200 image/png` that says `Internal Server Error`.
pub(super) fn check_image(bytes: &[u8], format: ImageFormat) -> Result<(), ClientError> {
    let is_one = match format {
        ImageFormat::Png => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        ImageFormat::Jpeg => bytes.starts_with(b"\xff\xd8\xff"),
        ImageFormat::Webp => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
    };
    if is_one {
        return Ok(());
    }
    let words = crate::http::excerpt(&String::from_utf8_lossy(&bytes[..bytes.len().min(200)]));
    Err(ClientError::InstanceLost(format!("a screenshot that is no picture: {words:?}")))
}

/// Raw bytes in MessagePack, base64 in JSON.
fn picture_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Cow<'de, [u8]>, D::Error> {
    struct Either;
    impl<'de> de::Visitor<'de> for Either {
        type Value = Cow<'de, [u8]>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a picture as bytes or as base64 text")
        }
        fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> Result<Cow<'de, [u8]>, E> {
            Ok(bytes.into())
        }
        fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Cow<'de, [u8]>, E> {
            Ok(bytes.to_vec().into())
        }
        fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Cow<'de, [u8]>, E> {
            Ok(bytes.into())
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Cow<'de, [u8]>, E> {
            use base64::{Engine, engine::general_purpose::STANDARD};
            STANDARD.decode(text).map(Cow::from).map_err(E::custom)
        }
    }
    from.deserialize_any(Either)
}

/// The last screenshot's elements, whatever kind of numbers they are named by; `None` when there was no screenshot.
pub fn read_screenshot_info(body: &Value) -> Option<ScreenshotInfo> {
    if body.get("error").is_some() {
        return None;
    }
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let words = |name: &str| -> Vec<String> {
        body.get(name)
            .and_then(Value::as_array)
            .map(|list| list.iter().map(word).collect())
            .unwrap_or_default()
    };
    let map = |name: &str| body.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let id_mapping =
        map("id_mapping").into_iter().map(|(shown, element)| (shown, json!(word(&element)))).collect();
    Some(ScreenshotInfo {
        visible_rects: words("visible_rects"),
        rects_above: words("rects_above"),
        rects_below: words("rects_below"),
        interactive_regions: map("interactive_regions"),
        id_mapping,
    })
}
