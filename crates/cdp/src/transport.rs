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
/// A message never comes near this; a stream that does is not Chromium any more.
const LONGEST_MESSAGE: usize = 512 << 20;
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
pub(crate) async fn read_all(mut from: pipe::Receiver, mut message: impl FnMut(Bytes)) {
    let mut buffer = BytesMut::with_capacity(READ_CHUNK);
    let mut scanned = 0;
    loop {
        while let Some(offset) = memchr::memchr(0, &buffer[scanned..]) {
            let whole = buffer.split_to(scanned + offset + 1).freeze();
            scanned = 0;
            message(whole.slice(..whole.len() - 1));
        }
        scanned = buffer.len();
        buffer.reserve(READ_CHUNK);
        match from.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) if buffer.len() > LONGEST_MESSAGE => return,
            Ok(_) => {}
        }
    }
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
}
