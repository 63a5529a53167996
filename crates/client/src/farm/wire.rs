//! The wire formats of the farm's API, in JSON or MessagePack. Parsing is lenient, because the Python system is less strict
//! about numbers and strings than ours.

use std::borrow::Cow;

use bytes::Bytes;
use proto::{
    ErrorCode, ImageFormat, InteractionMode,
    page::{PageMetadata, ScreenshotInfo},
};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value, json};

use super::ClientError;

/// A lease of a browser. Both parts are opaque and are only sent back to the farm.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    pub instance_id: String,
    pub node: String,
}

impl Lease {
    pub(super) fn read(body: &Value) -> Option<Self> {
        let text = |name: &str| match body.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        Some(Self { instance_id: text("instance_id")?, node: text("node")? })
    }
}

/// A new lease, where a person can watch it, and where CDP clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedLease {
    pub lease: Lease,
    /// Absent if the farm has no live view.
    pub live_url: Option<LiveUrl>,
    /// Absent if the farm has no CDP endpoint.
    pub cdp_url: Option<CdpUrl>,
}

impl GrantedLease {
    pub(super) fn read(body: &Value) -> Option<Self> {
        let live_url = body.get("live_url").and_then(Value::as_str).and_then(LiveUrl::new);
        let cdp_url = body.get("cdp_url").and_then(Value::as_str).and_then(CdpUrl::new);
        Some(Self { lease: Lease::read(body)?, live_url, cdp_url })
    }
}

/// The address at which a person can watch a lease. It contains a secret, so it is never printed or written.
#[derive(Clone, PartialEq, Eq)]
pub struct LiveUrl(String);

impl LiveUrl {
    /// Accepts web addresses only: the monitor shows it as a link.
    pub fn new(url: &str) -> Option<Self> {
        let is_web = url.starts_with("http://") || url.starts_with("https://");
        is_web.then(|| Self(url.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for LiveUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LiveUrl(…)")
    }
}

/// The address at which CDP clients drive a lease. It contains a secret, so it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct CdpUrl(String);

impl CdpUrl {
    pub fn new(url: &str) -> Option<Self> {
        let is_web = url.starts_with("http://") || url.starts_with("https://");
        is_web.then(|| Self(url.trim_end_matches('/').to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for CdpUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CdpUrl(…)")
    }
}

/// The size of the viewport in CSS pixels.
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

/// What `/observe` and `/step` return.
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
    /// What an episode needs at each step.
    pub const fn for_step(mode: InteractionMode) -> Self {
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

/// A screenshot in its original format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screenshot {
    pub format: ImageFormat,
    pub width: u32,
    pub height: u32,
    /// A slice of the response body where possible, since the image is most of it.
    pub data: Bytes,
}

#[derive(Deserialize)]
struct ScreenshotWire<'a> {
    format: ImageFormat,
    #[serde(default)]
    width: u32,
    #[serde(default)]
    height: u32,
    #[serde(borrow, deserialize_with = "image_bytes")]
    data: Cow<'a, [u8]>,
}

impl ScreenshotWire<'_> {
    /// Converts to a screenshot that shares the memory of the response body.
    fn into_screenshot(self, body: &Bytes) -> Screenshot {
        let Self { format, width, height, data } = self;
        let data = match data {
            Cow::Borrowed(part) => body.slice_ref(part),
            Cow::Owned(bytes) => bytes.into(),
        };
        Screenshot { format, width, height, data }
    }
}

/// An observation of the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The command's result.
    pub result: Option<Value>,
    /// Why the command failed, although the page was observed.
    pub failure: Option<ClientError>,
    pub settled: bool,
    pub settle_ms: u64,
    pub screenshot: Option<Screenshot>,
    pub metadata: Option<PageMetadata>,
    pub ac_tree: Option<String>,
    pub screenshot_info: Option<Value>,
    /// The screenshot equals the previous one.
    pub unchanged: bool,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ObservationWire<'a> {
    result: Option<Value>,
    error: Option<FailureWire>,
    settled: bool,
    settle_ms: u64,
    #[serde(borrow)]
    screenshot: Option<ScreenshotWire<'a>>,
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
            |reason: String| ClientError::Other(format!("cannot parse the observation: {reason}"));
        let wire: ObservationWire<'_> = if content_type.contains("msgpack") {
            rmp_serde::from_slice(body).map_err(|error| unreadable(error.to_string()))?
        } else {
            serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()))?
        };
        let screenshot = wire.screenshot.map(|wire| wire.into_screenshot(body));
        if let Some(screenshot) = &screenshot {
            check_image(&screenshot.data, screenshot.format)?;
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

/// Checks the image signature. The Python system reports a dead browser as `200 image/png` with the text `Internal Server
/// Error`.
pub(super) fn check_image(bytes: &[u8], format: ImageFormat) -> Result<(), ClientError> {
    if ImageFormat::of(bytes) == Some(format) {
        return Ok(());
    }
    let excerpt = crate::http::excerpt(&String::from_utf8_lossy(&bytes[..bytes.len().min(200)]));
    Err(ClientError::InstanceLost(format!("the screenshot is not an image: {excerpt:?}")))
}

/// Reads an image from raw bytes (MessagePack) or base64 text (JSON).
fn image_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Cow<'de, [u8]>, D::Error> {
    struct BytesOrBase64;
    impl<'de> de::Visitor<'de> for BytesOrBase64 {
        type Value = Cow<'de, [u8]>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an image as bytes or as base64 text")
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
    from.deserialize_any(BytesOrBase64)
}

/// Reads the elements of the last screenshot; their ids may be numbers or strings. Returns `None` when there was no screenshot.
pub fn read_screenshot_info(body: &Value) -> Option<ScreenshotInfo> {
    if body.get("error").is_some() {
        return None;
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let texts = |name: &str| -> Vec<String> {
        body.get(name)
            .and_then(Value::as_array)
            .map(|list| list.iter().map(text).collect())
            .unwrap_or_default()
    };
    let map = |name: &str| body.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let id_mapping =
        map("id_mapping").into_iter().map(|(shown, element)| (shown, json!(text(&element)))).collect();
    Some(ScreenshotInfo {
        visible_rects: texts("visible_rects"),
        rects_above: texts("rects_above"),
        rects_below: texts("rects_below"),
        interactive_regions: map("interactive_regions"),
        id_mapping,
    })
}
