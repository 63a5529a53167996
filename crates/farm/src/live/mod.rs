//! The live view of a lease: a page that shows its screencast, address, console and state to a person, who may also take over.
//! The viewers of a lease share one screencast ([`cast`]), which runs only while there are any; each has a WebSocket
//! ([`viewer`]) and gets the latest frame when it has drawn the one before, so a slow viewer misses frames and delays nobody.

mod cast;
mod console;
mod endpoint;
mod message;
mod rate;
mod viewer;

use std::time::Duration;

pub(crate) use cast::LiveCast;
pub(crate) use endpoint::{asset, serve};

/// Entry point for the fuzzer: the call that a message of a viewer in control becomes, if it is input.
#[doc(hidden)]
pub fn live_message_for_fuzzing(text: &str, viewport: (u32, u32)) -> Option<(String, serde_json::Value)> {
    match message::ViewerMessage::parse(text).ok()? {
        message::ViewerMessage::Input(input) => {
            let (method, params) = input.call(viewport);
            Some((method.name().to_owned(), params))
        }
        _ => None,
    }
}

/// Viewers of one lease at the same time.
const MAX_VIEWERS: usize = 8;
/// The largest message of a viewer.
const MAX_MESSAGE_BYTES: usize = 16 << 10;
/// Messages of a viewer in a second, on average and at once.
const MAX_MESSAGES_PER_SECOND: f64 = 200.0;
const MAX_MESSAGE_BURST: f64 = 400.0;
/// The quality of the JPEG frames.
const FRAME_QUALITY: u8 = 70;
/// At most 20 frames per second are captured.
const MIN_FRAME_INTERVAL: Duration = Duration::from_millis(50);
/// Console messages that are kept for viewers.
const MAX_CONSOLE_ENTRIES: usize = 200;
/// How long after the input of a person new windows are its effect.
const FOLLOW_TIME: Duration = Duration::from_secs(10);
