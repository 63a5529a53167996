//! Answers a request with its recording.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::{StatusCode, body::Frame as BodyFrame};
use jiff::Timestamp;
use replay::{
    Found,
    exchange::FrameData,
    respond::{respond, shift_dates},
    scan::StoredExchange,
};

use super::{
    Traffic,
    exchange::{Asked, Dropped, reason, to_http},
};
use crate::egress::{ProxyResponse, failure, full_body};

/// Larger bodies are read and decompressed outside of the event loop.
const LARGE_BODY: u64 = 256 << 10;

impl Traffic {
    pub(super) async fn play(
        self: &Arc<Self>,
        mut asked: Asked,
        found: Found,
    ) -> Result<ProxyResponse, Dropped> {
        let response = if found.stored().body_length > LARGE_BODY {
            let found = found.clone();
            tokio::task::spawn_blocking(move || found.response()).await
        } else {
            Ok(found.response())
        };
        let recorded = match response {
            Ok(Ok(Ok(recorded))) => recorded,
            Ok(Ok(Err(error))) => {
                let text = format!("webgym: the site could not be reached when it was recorded: {error}");
                return asked.fail(failure(StatusCode::BAD_GATEWAY, &text, reason(&error)));
            }
            Ok(Err(error)) => return unreadable(&asked, &error.to_string()),
            Err(error) => return unreadable(&asked, &error.to_string()),
        };
        let stored = found.stored();
        let websocket = asked.websocket.take();
        if let Some(browser) = websocket.filter(|_| recorded.status == 101) {
            return Ok(self.play_websocket(browser, &asked, &recorded, stored));
        }
        let mut response = respond(&asked.request, &recorded);
        shift_dates(&mut response.headers, stored.date, Timestamp::now());
        let body = std::mem::take(&mut response.body);
        if is_unfinished(stored) {
            response.headers.remove("content-length");
            return Ok(to_http(&response, endless_body(body)));
        }
        Ok(to_http(&response, full_body(body)))
    }
}

fn unreadable(asked: &Asked, error: &str) -> Result<ProxyResponse, Dropped> {
    tracing::error!(url = asked.request.url, %error, "a recording cannot be read");
    asked.fail(failure(StatusCode::BAD_GATEWAY, "webgym: the recording cannot be read", "ConnectionFailed"))
}

/// Whether the response was still arriving when the recording ended.
fn is_unfinished(stored: &StoredExchange) -> bool {
    let has_chunks = stored.frames.iter().any(|frame| matches!(frame.data, FrameData::Chunk(_)));
    let is_ended = stored.frames.iter().any(|frame| matches!(frame.data, FrameData::Close { .. }));
    has_chunks && !is_ended
}

/// A body that does not end until the browser closes it.
fn endless_body(
    content: Bytes,
) -> http_body_util::combinators::UnsyncBoxBody<Bytes, crate::egress::BodyError> {
    let first = stream::once(async move { Ok::<_, Infallible>(BodyFrame::data(content)) });
    StreamBody::new(first.chain(stream::pending())).map_err(|never| match never {}).boxed_unsync()
}
