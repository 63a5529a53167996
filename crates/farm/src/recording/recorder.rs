//! Records one lease: frames into a file beside the files of the session, everything else in memory.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use browser::{
    BrowserError, ConsoleEntry, Frame, NextFrame, NodeSpace, PageInfo, ScreencastOptions, ScreencastSink,
    TenantBrowser,
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    fs::File,
    io::AsyncWriteExt,
    sync::{mpsc, oneshot},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    FRAME_INTERVAL, FRAME_QUALITY, MAX_BYTES, MAX_ENTRIES, MAX_FRAMES, RecordingPart, har::NetworkLog,
};
use crate::{error::ApiError, tasks::Tasks};

/// More frames than the browser sends without an acknowledgement.
const MAX_UNACKNOWLEDGED: usize = 16;

/// The longest wait for the capture to start; the recording then begins later.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Told when the frames that have arrived are written.
type Reader = oneshot::Sender<()>;

/// A frame on its way to the file, and when it came. Dropping `next` asks for the next one.
struct ReceivedFrame<N = NextFrame> {
    jpeg: Bytes,
    time: f64,
    next: N,
}

struct FrameEntry {
    /// Seconds since the start.
    time: f64,
    offset: u64,
    length: u64,
}

#[derive(Default)]
struct Contents {
    frames: Vec<FrameEntry>,
    bytes: u64,
    /// A limit was reached; later frames are missing.
    is_truncated: bool,
    console: Vec<(f64, ConsoleEntry)>,
    missed_messages: u64,
    pages: Vec<(f64, PageInfo)>,
    network: NetworkLog,
}

struct RecordingLog {
    started: Instant,
    started_at: SystemTime,
    contents: Mutex<Contents>,
    received: mpsc::Sender<ReceivedFrame>,
}

impl RecordingLog {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed(&self) -> f64 {
        (self.started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0
    }
}

impl ScreencastSink for RecordingLog {
    fn on_frame(&self, frame: Frame) {
        let received = ReceivedFrame { jpeg: frame.jpeg, time: self.elapsed(), next: frame.next };
        let _ = self.received.try_send(received);
    }

    fn on_page(&self, page: PageInfo) {
        let mut contents = self.contents();
        if contents.pages.len() < MAX_ENTRIES {
            contents.pages.push((self.elapsed(), page));
        }
    }

    fn on_console(&self, entry: ConsoleEntry) {
        let mut contents = self.contents();
        if contents.console.len() < MAX_ENTRIES {
            contents.console.push((self.elapsed(), entry));
        } else {
            contents.missed_messages += 1;
        }
    }

    fn on_network(&self, method: &str, params: &[u8]) {
        self.contents().network.handle_event(method, params);
    }
}

/// Writes frames to the file, until a limit is reached.
struct FrameWriter {
    log: Arc<RecordingLog>,
    file: File,
    space: NodeSpace,
}

impl FrameWriter {
    /// Writes frames not faster than the frame rate allows. Who reads the recording gets all that have arrived.
    async fn run<N>(
        mut self,
        mut received: mpsc::Receiver<ReceivedFrame<N>>,
        mut readers: mpsc::Receiver<Reader>,
    ) {
        let mut last: Option<N> = None;
        let mut pause = tokio::time::Instant::now();
        loop {
            let may_continue = !self.log.contents().is_truncated;
            tokio::select! {
                biased;
                Some(reader) = readers.recv() => {
                    while let Ok(frame) = received.try_recv() {
                        last = Some(self.write(frame).await);
                    }
                    let _ = reader.send(());
                }
                () = tokio::time::sleep_until(pause), if last.is_some() && may_continue => last = None,
                Some(frame) = received.recv(), if last.is_none() && may_continue => {
                    last = Some(self.write(frame).await);
                    pause = tokio::time::Instant::now() + FRAME_INTERVAL;
                }
                else => return,
            }
        }
    }

    /// Writes a frame if there is space. After the last one, console and network events are still recorded.
    async fn write<N>(&mut self, frame: ReceivedFrame<N>) -> N {
        let ReceivedFrame { jpeg, time, next } = frame;
        let length = jpeg.len() as u64;
        let (offset, frames) = {
            let contents = self.log.contents();
            (contents.bytes, contents.frames.len())
        };
        let has_space =
            offset + length <= MAX_BYTES && frames < MAX_FRAMES && self.space.grow(length).is_ok();
        if !has_space || self.log.contents().is_truncated {
            self.log.contents().is_truncated = true;
            return next;
        }
        let written = async {
            self.file.write_all(&jpeg).await?;
            self.file.flush().await
        };
        if let Err(error) = written.await {
            tracing::warn!(%error, "cannot write the recording of a lease; it ends here");
            self.log.contents().is_truncated = true;
            return next;
        }
        let mut contents = self.log.contents();
        contents.frames.push(FrameEntry { time, offset, length });
        contents.bytes = offset + length;
        next
    }
}

/// The recording of a lease. Dropping it ends the recording and removes its file.
pub(crate) struct Recorder {
    log: Arc<RecordingLog>,
    file: PathBuf,
    viewport: (u32, u32),
    readers: mpsc::Sender<Reader>,
    _stop: DropGuard,
}

impl Recorder {
    pub(crate) async fn start(tenant: &TenantBrowser, tasks: &Tasks) -> Result<Self, BrowserError> {
        let path = tenant.recording_file();
        let file = create_file(&path).await.map_err(|error| {
            BrowserError::Internal(format!("cannot create the file of a recording: {error}"))
        })?;
        let (sender, received) = mpsc::channel(MAX_UNACKNOWLEDGED);
        let log = Arc::new(RecordingLog {
            started: Instant::now(),
            started_at: SystemTime::now(),
            contents: Mutex::default(),
            received: sender,
        });
        let options = ScreencastOptions { quality: FRAME_QUALITY, network: true };
        let sink: Arc<dyn ScreencastSink> = Arc::<RecordingLog>::clone(&log);
        let screencast = tenant.open_screencast(sink, options).await?;
        let mut has_started = screencast.has_started();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (readers, waiting) = mpsc::channel(1);
        let writer = FrameWriter { log: Arc::clone(&log), file, space: tenant.recording_space() };
        let writing = writer.run(received, waiting);
        tasks.spawn_until_stopped("recording", async move {
            tokio::select! {
                () = screencast.run() => {}
                () = writing => {}
                () = stopped.cancelled() => {}
            }
        });
        let stop = stop.drop_guard();
        // The client's first command must be part of the recording.
        let _ = tokio::time::timeout(START_TIMEOUT, has_started.wait_for(|has_started| *has_started)).await;
        Ok(Self { log, file: path, viewport: tenant.viewport(), readers, _stop: stop })
    }

    /// Returns a part of the recording so far.
    pub(crate) async fn read(&self, part: RecordingPart) -> Result<Bytes, ApiError> {
        self.write_received().await;
        match part {
            RecordingPart::Frames => self.read_frames().await,
            RecordingPart::Index => Ok(self.index().to_string().into()),
            RecordingPart::Console => Ok(console_lines(&self.log.contents().console).into()),
            RecordingPart::Network => Ok(self.log.contents().network.to_har().to_string().into()),
        }
    }

    /// Waits until the frames that have arrived are written.
    async fn write_received(&self) {
        let (reader, written) = oneshot::channel();
        // The writer ends with the browser; then there is nothing to wait for.
        if self.readers.send(reader).await.is_ok() {
            let _ = written.await;
        }
    }

    /// Reads the frames that the index lists; one more may be in the file already.
    async fn read_frames(&self) -> Result<Bytes, ApiError> {
        let length = self.log.contents().bytes;
        let mut frames = tokio::fs::read(&self.file)
            .await
            .map_err(|error| ApiError::Internal(format!("cannot read the recording: {error}")))?;
        frames.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(frames.into())
    }

    fn index(&self) -> Value {
        let (width, height) = self.viewport;
        let contents = self.log.contents();
        let frames = contents.frames.iter().map(|frame| json!([frame.time, frame.offset, frame.length]));
        let pages = contents.pages.iter();
        let pages = pages.map(|(time, page)| json!({"time": time, "url": page.url, "title": page.title}));
        let started = self.log.started_at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        json!({
            "format": "webgym-recording-1", "started": started, "duration": self.log.elapsed(),
            "viewport": {"width": width, "height": height}, "truncated": contents.is_truncated,
            "missed_messages": contents.missed_messages, "frames": frames.collect::<Vec<_>>(),
            "pages": pages.collect::<Vec<_>>(),
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.file)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::debug!(%error, "cannot remove the file of a recording");
        }
    }
}

async fn create_file(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await?;
    }
    File::create(path).await
}

fn console_lines(entries: &[(f64, ConsoleEntry)]) -> Vec<u8> {
    let mut lines = Vec::new();
    for (time, entry) in entries {
        let line = json!({"time": time, "level": entry.level, "text": entry.text, "url": entry.url, "line": entry.line});
        let _ = writeln!(lines, "{line}");
    }
    lines
}

#[cfg(test)]
mod tests {
    use browser::FileBudget;

    use super::*;

    /// The end of an episode is read at once.
    #[tokio::test(start_paused = true)]
    async fn reader_gets_all_frames_that_have_arrived() {
        let folder = tempfile::tempdir().unwrap();
        let (unused, _) = mpsc::channel(1);
        let log = Arc::new(RecordingLog {
            started: Instant::now(),
            started_at: SystemTime::now(),
            contents: Mutex::default(),
            received: unused,
        });
        let space = NodeSpace::new(Arc::new(FileBudget::new(0, 25)));
        let file = create_file(&folder.path().join("frames")).await.unwrap();
        let writer = FrameWriter { log: Arc::clone(&log), file, space };
        let (frames, received) = mpsc::channel(MAX_UNACKNOWLEDGED);
        let (readers, waiting) = mpsc::channel(1);
        let writing = tokio::spawn(writer.run(received, waiting));
        let read = async || {
            let (reader, written) = oneshot::channel();
            readers.send(reader).await.unwrap();
            written.await.unwrap();
            let contents = log.contents();
            (contents.frames.len(), contents.is_truncated)
        };
        let frame = || ReceivedFrame { jpeg: Bytes::from_static(b"0123456789"), time: 0.0, next: () };
        frames.send(frame()).await.unwrap();
        frames.send(frame()).await.unwrap();
        assert_eq!(read().await, (2, false), "without waiting for the next interval");
        frames.send(frame()).await.unwrap();
        assert_eq!(read().await, (2, true), "the third does not fit in 25 bytes");
        drop((frames, readers));
        writing.await.unwrap();
    }
}
