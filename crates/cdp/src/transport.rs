//! NUL-separated JSON messages over the two pipes of `--remote-debugging-pipe`. Owns the tasks that read and write. When
//! either pipe ends, the browser has exited.

use bytes::{Bytes, BytesMut};
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
    // Whether the rest of a message that is too long is being skipped.
    let mut skipping = false;
    loop {
        while let Some(offset) = memchr::memchr(0, &buffer[scanned..]) {
            let whole = buffer.split_to(scanned + offset + 1).freeze();
            scanned = 0;
            if !std::mem::take(&mut skipping) {
                on_message(whole.slice(..whole.len() - 1));
            }
        }
        if buffer.len() > max_bytes && !skipping {
            skipping = true;
            on_message(too_long_substitute(&buffer));
        }
        if skipping {
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

/// Returns the message that replaces one that is too long. A reply becomes an error reply, so that its caller fails at
/// once.
fn too_long_substitute(start: &[u8]) -> Bytes {
    let id = start.strip_prefix(b"{\"id\":").unwrap_or_default();
    let digits = id.iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let id = std::str::from_utf8(&id[..digits]).ok().filter(|id| !id.is_empty());
    let max_mib = MAX_MESSAGE_BYTES >> 20;
    tracing::warn!(max_mib, reply = id.is_some(), "skipped a message from the browser that is too long");
    let substitute = match id {
        Some(id) => {
            format!(
                "{{\"id\":{id},\"error\":{{\"code\":0,\"message\":\"the reply is longer than {max_mib} MiB\"}}}}"
            )
        }
        None => "{\"method\":\"webgym.tooLong\"}".to_owned(),
    };
    Bytes::from(substitute)
}

#[cfg(test)]
mod tests {
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
    async fn too_long_messages_are_skipped() {
        let (mut to, from) = pipe::pipe().unwrap();
        let long = "x".repeat(300 << 10);
        let sent =
            format!("{{\"id\":7,\"result\":\"{long}\"}}\0{{}}\0{{\"method\":\"{long}\"}}\0{{\"b\":2}}\0");
        let writing = tokio::spawn(async move { to.write_all(sent.as_bytes()).await.unwrap() });
        let mut got = Vec::new();
        read_bounded(64 << 10, from, |message| got.push(String::from_utf8(message.to_vec()).unwrap())).await;
        writing.await.unwrap();
        assert!(got[0].starts_with("{\"id\":7,\"error\":"), "{got:?}");
        assert_eq!(got[1..], ["{}", "{\"method\":\"webgym.tooLong\"}", "{\"b\":2}"]);
    }
}
