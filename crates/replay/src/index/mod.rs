//! The CDXJ index: a sorted line for each response, with its place in a WARC file. It is derived from the WARC files and
//! can be deleted at any time.

mod post;
mod surt;

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

pub use surt::surt;

use crate::{
    ArchiveError, layout,
    scan::{Payload, Scan, StoredExchange, scan},
    warc::{Limits, http},
};

/// The JSON part of a line. Numbers are strings, as the readers of such files expect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    pub url: String,
    #[serde(default)]
    pub mime: String,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub digest: String,
    pub length: String,
    pub offset: String,
    pub filename: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(default, rename = "requestBody", skip_serializing_if = "Option::is_none")]
    pub request_body: Option<String>,
}

/// Returns the lines of the index in order.
pub fn lines(scan: &Scan) -> Vec<String> {
    let mut lines: Vec<String> = scan.exchanges.iter().filter_map(|stored| line(scan, stored)).collect();
    lines.sort_unstable();
    lines
}

/// Returns the line of a response; a request that failed has none.
fn line(scan: &Scan, stored: &StoredExchange) -> Option<String> {
    let response = stored.response.as_ref()?;
    let mime = match &stored.payload {
        Payload::Elsewhere { .. } => "warc/revisit".to_owned(),
        _ => response.headers.media_type().unwrap_or_default(),
    };
    let folded = post::fold(&stored.request);
    let key = surt(folded.as_ref().map_or(stored.request.url.as_str(), |folded| &folded.url));
    let entry = IndexEntry {
        url: http::stored_url(&stored.request.url).into_owned(),
        mime,
        status: response.status.to_string(),
        digest: stored.digest.clone(),
        length: stored.length.to_string(),
        offset: stored.offset.to_string(),
        filename: layout::file_name(&scan.files[stored.file]),
        method: folded.is_some().then(|| stored.request.method.to_ascii_uppercase()),
        request_body: folded.map(|folded| folded.body),
    };
    let json = serde_json::to_string(&entry).ok()?;
    Some(format!("{key} {} {json}", stored.date.strftime("%Y%m%d%H%M%S")))
}

/// Writes the index anew and returns its path.
pub fn rebuild(directory: &Path) -> Result<PathBuf, ArchiveError> {
    let scan = scan(directory, Limits::default())?;
    write(directory, &scan)
}

pub(crate) fn write(directory: &Path, scan: &Scan) -> Result<PathBuf, ArchiveError> {
    let path = layout::index_path(directory);
    let mut text = lines(scan).join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    layout::write_file(&path, text.as_bytes())?;
    Ok(path)
}

/// Whether the index is missing or older than a WARC file.
pub fn is_stale(directory: &Path) -> Result<bool, ArchiveError> {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let Some(index) = modified(&layout::index_path(directory)) else { return Ok(true) };
    let files = layout::warc_files(directory)?;
    Ok(files.iter().any(|path| modified(path).unwrap_or(SystemTime::UNIX_EPOCH) > index))
}
