//! The fields of a HAR file that we read and write. Everything that a program may leave out has a default.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct Har {
    pub(super) log: Log,
}

#[derive(Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Log {
    pub(super) version: String,
    pub(super) creator: Creator,
    pub(super) entries: Vec<Entry>,
}

impl Default for Log {
    fn default() -> Self {
        Self { version: "1.2".into(), creator: Creator::default(), entries: Vec::new() }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Creator {
    pub(super) name: String,
    pub(super) version: String,
}

impl Default for Creator {
    fn default() -> Self {
        Self { name: "webgym-rs".into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) started_date_time: String,
    #[serde(default)]
    pub(super) time: f64,
    pub(super) request: HarRequest,
    pub(super) response: HarResponse,
    #[serde(default)]
    pub(super) cache: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    pub(super) timings: Timings,
    #[serde(default, rename = "serverIPAddress", skip_serializing_if = "Option::is_none")]
    pub(super) server_ip_address: Option<String>,
    #[serde(default, rename = "_resourceType", skip_serializing_if = "Option::is_none")]
    pub(super) resource_type: Option<String>,
    #[serde(default, rename = "_webSocketMessages", skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<Message>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Timings {
    pub(super) send: f64,
    pub(super) wait: f64,
    pub(super) receive: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HarRequest {
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default)]
    pub(super) http_version: String,
    #[serde(default)]
    pub(super) cookies: Vec<Pair>,
    #[serde(default)]
    pub(super) headers: Vec<Pair>,
    #[serde(default)]
    pub(super) query_string: Vec<Pair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) post_data: Option<PostData>,
    #[serde(default = "unknown")]
    pub(super) headers_size: i64,
    #[serde(default = "unknown")]
    pub(super) body_size: i64,
}

/// How HAR says that a size is not known.
pub(super) fn unknown() -> i64 {
    -1
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PostData {
    pub(super) mime_type: String,
    pub(super) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) encoding: Option<String>,
    pub(super) params: Vec<Pair>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HarResponse {
    pub(super) status: i64,
    #[serde(default)]
    pub(super) status_text: String,
    #[serde(default)]
    pub(super) http_version: String,
    #[serde(default)]
    pub(super) cookies: Vec<Pair>,
    #[serde(default)]
    pub(super) headers: Vec<Pair>,
    #[serde(default)]
    pub(super) content: Content,
    #[serde(default, rename = "redirectURL")]
    pub(super) redirect_url: String,
    #[serde(default = "unknown")]
    pub(super) headers_size: i64,
    #[serde(default = "unknown")]
    pub(super) body_size: i64,
    #[serde(default, rename = "_error", alias = "_failureText", skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Content {
    pub(super) size: i64,
    pub(super) mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) encoding: Option<String>,
    /// Playwright's name of a file beside the HAR file.
    #[serde(rename = "_file", skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comment: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: String,
}

/// Chromium's form of WebSocket messages.
#[derive(Serialize, Deserialize)]
pub(super) struct Message {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Seconds since the epoch.
    #[serde(default)]
    pub(super) time: f64,
    #[serde(default)]
    pub(super) opcode: u8,
    #[serde(default)]
    pub(super) data: String,
}
