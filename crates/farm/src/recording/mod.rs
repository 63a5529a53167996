//! The recording of a lease with the session option `record`: a screencast of few frames per second in one file of JPEG images
//! with an index, console messages, and network events as HAR. Bounded in frames, bytes and entries; ends with the lease.

mod har;
mod recorder;

use std::time::Duration;

pub(crate) use recorder::Recorder;

/// At most 4 frames per second are recorded, and only when the page changes.
const FRAME_INTERVAL: Duration = Duration::from_millis(250);
const FRAME_QUALITY: u8 = 60;
/// The largest recording of a lease, in bytes of frames and in frames.
const MAX_BYTES: u64 = 32 << 20;
const MAX_FRAMES: usize = 10_000;
/// Further console messages, requests and pages are counted, not kept.
const MAX_ENTRIES: usize = 5000;

/// A part of a recording, named like the file that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordingPart {
    /// Times and places of the frames, and the pages that were shown.
    Index,
    /// The frames, one JPEG after the other.
    Frames,
    Console,
    Network,
}

impl RecordingPart {
    pub(crate) const ALL: [Self; 4] = [Self::Index, Self::Frames, Self::Console, Self::Network];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Index => "recording.json",
            Self::Frames => "recording.mjpeg",
            Self::Console => "console.jsonl",
            Self::Network => "network.har",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Index | Self::Network => "application/json",
            Self::Frames => "application/octet-stream",
            Self::Console => "application/jsonl",
        }
    }
}
