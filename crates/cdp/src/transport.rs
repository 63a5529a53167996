//! NUL-separated JSON over the two pipes that Chromium was born with. Owns the two tasks that read and write;
//! the end of either pipe is the end of the browser.

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    sync::mpsc,
};

/// How many messages may wait for a browser that does not read. Past that it is taken to be hung.
const OUTBOX: usize = 8192;
/// Nothing we ask for comes near this. A page can make the browser tell us of something that does (a message on a
/// socket, say): that one is left out, and neither our memory nor the browser's other tenants pay for it.
const LONGEST_MESSAGE: usize = 64 << 20;
const READ_CHUNK: usize = 256 << 10;

pub(crate) fn writer(mut to: pipe::Sender) -> mpsc::Sender<Bytes> {
    let (outbox, mut messages) = mpsc::channel::<Bytes>(OUTBOX);
    tokio::spawn(async move {
        while let Some(message) = messages.recv().await {
            if to.write_all(&message).await.is_err() {
                break;
            }
        }
    });
    outbox
}

/// Reads until the pipe ends, handing over each message in order.
pub(crate) async fn read_all(from: pipe::Receiver, message: impl FnMut(Bytes)) {
    read_within(LONGEST_MESSAGE, from, message).await;
}

async fn read_within(longest: usize, mut from: pipe::Receiver, mut message: impl FnMut(Bytes)) {
    let mut buffer = BytesMut::with_capacity(READ_CHUNK);
    let mut scanned = 0;
    // In the middle of a message that is too long.
    let mut skipping = false;
    loop {
        while let Some(offset) = memchr::memchr(0, &buffer[scanned..]) {
            let whole = buffer.split_to(scanned + offset + 1).freeze();
            scanned = 0;
            if !std::mem::take(&mut skipping) {
                message(whole.slice(..whole.len() - 1));
            }
        }
        if buffer.len() > longest && !skipping {
            skipping = true;
            message(refusal(&buffer));
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

/// What stands for a message that is too long: whoever waits for it is told so at once.
fn refusal(begun: &[u8]) -> Bytes {
    let id = begun.strip_prefix(b"{\"id\":").unwrap_or_default();
    let digits = id.iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let id = std::str::from_utf8(&id[..digits]).ok().filter(|id| !id.is_empty());
    let longest = LONGEST_MESSAGE >> 20;
    tracing::warn!(
        megabytes = longest,
        reply = id.is_some(),
        "the browser sent a message that is too long; it is left out"
    );
    let stand_in = match id {
        Some(id) => {
            format!(
                "{{\"id\":{id},\"error\":{{\"code\":0,\"message\":\"the answer is longer than {longest} MiB\"}}}}"
            )
        }
        None => "{\"method\":\"webgym.tooLong\"}".to_owned(),
    };
    Bytes::from(stand_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_arrive_whole_however_they_are_cut() {
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
    async fn what_is_too_long_is_left_out_and_the_rest_goes_on() {
        let (mut to, from) = pipe::pipe().unwrap();
        let long = "x".repeat(300 << 10);
        let sent =
            format!("{{\"id\":7,\"result\":\"{long}\"}}\0{{}}\0{{\"method\":\"{long}\"}}\0{{\"b\":2}}\0");
        let writing = tokio::spawn(async move { to.write_all(sent.as_bytes()).await.unwrap() });
        let mut got = Vec::new();
        read_within(64 << 10, from, |message| got.push(String::from_utf8(message.to_vec()).unwrap())).await;
        writing.await.unwrap();
        assert!(got[0].starts_with("{\"id\":7,\"error\":"), "{got:?}");
        assert_eq!(got[1..], ["{}", "{\"method\":\"webgym.tooLong\"}", "{\"b\":2}"]);
    }
}
