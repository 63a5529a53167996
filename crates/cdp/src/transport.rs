//! NUL-separated JSON messages over the two pipes of `--remote-debugging-pipe`. Owns the tasks that read and write. When
//! either pipe ends, the browser has exited.

use bytes::{Bytes, BytesMut};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    sync::mpsc,
};

/// How many messages may be queued for a browser that does not read; beyond that it counts as hung.
const MAX_QUEUED_MESSAGES: usize = 8192;
/// The size of the longest message that is kept. No reply we need comes near it, but a page can cause a longer event (a
/// WebSocket message, for example). Such a message is skipped, so that it costs neither memory nor other tenants' time.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
const READ_CHUNK: usize = 256 << 10;

/// Starts the task that writes queued messages to the browser.
pub(crate) fn writer(mut to: pipe::Sender) -> mpsc::Sender<Bytes> {
    let (outbox, mut messages) = mpsc::channel::<Bytes>(MAX_QUEUED_MESSAGES);
    tokio::spawn(async move {
        while let Some(message) = messages.recv().await {
            if to.write_all(&message).await.is_err() {
                break;
            }
        }
    });
    outbox
}

/// Reads until the pipe ends and passes each message to `on_message`, in order.
pub(crate) async fn read_all(from: pipe::Receiver, on_message: impl FnMut(Bytes)) {
    read_bounded(MAX_MESSAGE_BYTES, from, on_message).await;
}

async fn read_bounded(max_bytes: usize, mut from: pipe::Receiver, mut on_message: impl FnMut(Bytes)) {
    let mut buffer = BytesMut::with_capacity(READ_CHUNK);
    let mut scanned = 0;
    let mut skipped: Option<SkippedMessage> = None;
    loop {
        while let Some(offset) = memchr::memchr(0, &buffer[scanned..]) {
            let whole = buffer.split_to(scanned + offset + 1).freeze();
            scanned = 0;
            let message = whole.slice(..whole.len() - 1);
            match skipped.take() {
                Some(mut skipped) => {
                    skipped.add(&message);
                    on_message(skipped.substitute());
                }
                None => on_message(message),
            }
        }
        if buffer.len() > max_bytes || skipped.is_some() {
            skipped.get_or_insert_with(|| SkippedMessage::begin(&buffer)).add(&buffer);
            buffer = BytesMut::new();
        }
        scanned = buffer.len();
        buffer.reserve(READ_CHUNK);
        match from.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// What is kept of a message that is too long: its two ends, which tell what it belongs to.
struct SkippedMessage {
    start: Vec<u8>,
    end: Vec<u8>,
}

impl SkippedMessage {
    const START_BYTES: usize = 256;
    const END_BYTES: usize = 128;

    fn begin(start: &[u8]) -> Self {
        tracing::warn!(
            max_mib = MAX_MESSAGE_BYTES >> 20,
            "skipping a message from the browser that is too long"
        );
        Self { start: start[..start.len().min(Self::START_BYTES)].to_vec(), end: Vec::new() }
    }

    fn add(&mut self, part: &[u8]) {
        self.end.extend_from_slice(&part[part.len().saturating_sub(Self::END_BYTES)..]);
        self.end.drain(..self.end.len().saturating_sub(Self::END_BYTES));
    }

    /// Returns the message that replaces this one. A reply becomes an error for its caller. Of an event, session and
    /// request remain: a request that is paused must be continued.
    fn substitute(&self) -> Bytes {
        if let Some(id) = self.start.strip_prefix(b"{\"id\":") {
            let digits = id.iter().take_while(|byte| byte.is_ascii_digit());
            let id =
                digits.fold(0_u64, |id, digit| id.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
            let message = format!("the reply is longer than {} MiB", MAX_MESSAGE_BYTES >> 20);
            return json!({"id": id, "error": {"code": 0, "message": message}}).to_string().into();
        }
        // In texts of a page quotes are escaped, so these names are the browser's; but headers have names of the page's choice.
        // The browser's come first at the start, and last at the end.
        let (start, end) = (String::from_utf8_lossy(&self.start), String::from_utf8_lossy(&self.end));
        let text = |split: Option<(&str, &str)>| split?.1.split_once('"').map(|(text, _)| text.to_owned());
        let mut event = json!({"method": text(start.split_once("\"method\":\"")), "params": {}});
        if let Some(request) = text(start.split_once("\"requestId\":\"")) {
            event["params"]["requestId"] = request.into();
        }
        if let Some(session) = text(end.rsplit_once("\"sessionId\":\"")) {
            event["sessionId"] = session.into();
        }
        event.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn split_messages_are_reassembled() {
        let (to, from) = pipe::pipe().unwrap();
        let outbox = writer(to);
        for part in ["{\"a\"", ":1}\0{\"b\":2}\0{", "}\0half"] {
            outbox.send(Bytes::from_static(part.as_bytes())).await.unwrap();
        }
        drop(outbox);
        let mut got = Vec::new();
        read_all(from, |message| got.push(String::from_utf8(message.to_vec()).unwrap())).await;
        assert_eq!(got, ["{\"a\":1}", "{\"b\":2}", "{}"]);
    }

    #[tokio::test]
    async fn too_long_messages_keep_what_they_belong_to() {
        let (mut to, from) = pipe::pipe().unwrap();
        let long = "x".repeat(300 << 10);
        let paused = format!(
            r#"{{"method":"Fetch.requestPaused","params":{{"requestId":"r.1","request":{{"postData":"{long}"}}}},"sessionId":"S1"}}"#
        );
        let sent = format!("{{\"id\":7,\"result\":\"{long}\"}}\0{{}}\0{paused}\0{{\"b\":2}}\0");
        let writing = tokio::spawn(async move { to.write_all(sent.as_bytes()).await.unwrap() });
        let mut got = Vec::new();
        read_bounded(64 << 10, from, |message| got.push(String::from_utf8(message.to_vec()).unwrap())).await;
        writing.await.unwrap();
        let messages: Vec<Value> = got.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert!(messages[0]["id"] == 7 && messages[0]["error"]["message"].is_string(), "{got:?}");
        let event =
            json!({"method": "Fetch.requestPaused", "params": {"requestId": "r.1"}, "sessionId": "S1"});
        assert_eq!(messages[1..], [json!({}), event, json!({"b": 2})]);
    }
}
