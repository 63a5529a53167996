//! The exchanges of an archive as a table.

use std::fmt::Write;

use serde::Serialize;

use crate::scan::{Payload, Scan, StoredExchange};

/// A row: an exchange in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub time: String,
    pub method: String,
    pub url: String,
    /// Missing if the request failed.
    pub status: Option<u16>,
    pub mime: Option<String>,
    /// The size of the body as it was sent.
    pub size: u64,
    /// Whether the body is stored in another record.
    pub revisit: bool,
    pub error: Option<String>,
    /// The number of WebSocket messages and chunks.
    pub frames: usize,
    pub session: Option<String>,
}

pub fn rows(scan: &Scan) -> Vec<Row> {
    scan.exchanges.iter().map(row).collect()
}

fn row(stored: &StoredExchange) -> Row {
    let error = match &stored.payload {
        Payload::Failed(error) => Some(error.clone()),
        _ => None,
    };
    Row {
        time: format!("{:.3}", stored.date),
        method: stored.request.method.clone(),
        url: stored.request.url.clone(),
        status: stored.response.as_ref().map(|response| response.status),
        mime: stored.response.as_ref().and_then(|response| response.headers.media_type()),
        size: stored.body_length,
        revisit: matches!(stored.payload, Payload::Elsewhere { .. }),
        error,
        frames: stored.frames.len(),
        session: stored.session.clone(),
    }
}

/// Renders rows in columns; the URL comes last, because it is the longest.
pub fn render(rows: &[Row]) -> String {
    let mut text = format!("{:<8} {:>6} {:<28} {:>10}  {}\n", "method", "status", "mime", "size", "url");
    for row in rows {
        let status = row.status.map_or_else(|| "failed".into(), |status| status.to_string());
        let mime = row.error.as_deref().or(row.mime.as_deref()).unwrap_or("-");
        let _ = writeln!(text, "{:<8} {:>6} {:<28} {:>10}  {}", row.method, status, mime, row.size, row.url);
    }
    text
}
