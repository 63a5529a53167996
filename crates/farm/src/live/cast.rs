//! The screencast that the viewers of a lease share. It runs as long as a viewer holds it, captures at most a few frames ahead of
//! them, and keeps only the latest frame.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use browser::{
    BrowserError, ConsoleEntry, Frame, NextFrame, PageInfo, PersonInput, Screencast, ScreencastOptions,
    ScreencastSink, TenantBrowser,
};
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{FRAME_QUALITY, MIN_FRAME_INTERVAL, console::ConsoleBuffer};
use crate::tasks::Tasks;

/// More frames than the browser sends without an acknowledgement.
const MAX_UNACKNOWLEDGED: usize = 16;

/// A frame that waits to be acknowledged, and when it came.
type Received = (NextFrame, Instant);

/// What a screencast has shown last.
pub(crate) struct LiveHub {
    frame: watch::Sender<Option<Bytes>>,
    page: watch::Sender<PageInfo>,
    console: Mutex<ConsoleBuffer>,
    /// The number of viewers that wait for a frame.
    waiting: watch::Sender<usize>,
    received: mpsc::Sender<Received>,
}

impl LiveHub {
    pub(crate) fn frames(&self) -> watch::Receiver<Option<Bytes>> {
        self.frame.subscribe()
    }

    pub(crate) fn pages(&self) -> watch::Receiver<PageInfo> {
        self.page.subscribe()
    }

    pub(crate) fn console(&self) -> MutexGuard<'_, ConsoleBuffer> {
        self.console.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a viewer waits for a frame, until the guard is dropped.
    pub(crate) fn wait_for_frame(self: &Arc<Self>) -> WaitingGuard {
        self.waiting.send_modify(|waiting| *waiting += 1);
        WaitingGuard(Arc::clone(self))
    }
}

/// A viewer that waits for a frame.
pub(crate) struct WaitingGuard(Arc<LiveHub>);

impl Drop for WaitingGuard {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}

impl ScreencastSink for LiveHub {
    fn on_frame(&self, frame: Frame) {
        self.frame.send_replace(Some(frame.jpeg));
        // If the queue were full, the frame would be acknowledged at once.
        let _ = self.received.try_send((frame.next, Instant::now()));
    }

    fn on_page(&self, page: PageInfo) {
        self.page.send_replace(page);
    }

    fn on_console(&self, entry: ConsoleEntry) {
        self.console().push(entry);
    }
}

/// Acknowledges frames: not faster than the frame rate allows, and only while a viewer waits for the next one.
async fn acknowledge(hub: Arc<LiveHub>, mut received: mpsc::Receiver<Received>) {
    let mut waiting = hub.waiting.subscribe();
    while let Some((next, since)) = received.recv().await {
        tokio::time::sleep_until((since + MIN_FRAME_INTERVAL).into()).await;
        if waiting.wait_for(|waiting| *waiting > 0).await.is_err() {
            return;
        }
        drop(next);
    }
}

/// A running screencast. It stops when the last handle is dropped.
pub(crate) struct LiveCast {
    hub: Arc<LiveHub>,
    screencast: Arc<Screencast>,
    _stop: DropGuard,
}

impl LiveCast {
    pub(crate) async fn open(tenant: &TenantBrowser, tasks: &Tasks) -> Result<Arc<Self>, BrowserError> {
        let (sender, received) = mpsc::channel(MAX_UNACKNOWLEDGED);
        let hub = Arc::new(LiveHub {
            frame: watch::Sender::new(None),
            page: watch::Sender::new(PageInfo::default()),
            console: Mutex::default(),
            waiting: watch::Sender::new(0),
            received: sender,
        });
        let options = ScreencastOptions { quality: FRAME_QUALITY, network: false };
        let sink: Arc<dyn ScreencastSink> = Arc::<LiveHub>::clone(&hub);
        let screencast = Arc::new(tenant.open_screencast(sink, options).await?);
        let stop = CancellationToken::new();
        let (running, acknowledging) = (Arc::clone(&screencast), acknowledge(Arc::clone(&hub), received));
        let stopped = stop.clone();
        tasks.spawn_until_stopped("live view", async move {
            tokio::select! {
                () = running.run() => {}
                () = acknowledging => {}
                () = stopped.cancelled() => {}
            }
        });
        Ok(Arc::new(Self { hub, screencast, _stop: stop.drop_guard() }))
    }

    pub(crate) fn hub(&self) -> &Arc<LiveHub> {
        &self.hub
    }

    /// Sends the input of a person to the page. Returns whether there is a page.
    pub(crate) fn send_input(&self, input: &PersonInput) -> bool {
        self.screencast.send_input(input)
    }
}
