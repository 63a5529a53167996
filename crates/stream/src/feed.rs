//! The body of `GET /stream`: reads one item after the other from the journal, as fast as the consumer takes them, and waits
//! for the next one to finish.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, stream};
use store::journal::JournalReader;
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::Instant,
};

use crate::{
    item::{Format, Message},
    shared::{EndReason, Progress, Shared},
};

/// How often a consumer without new items is told that the run goes on.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// What a consumer asked for.
pub(crate) struct FeedOptions {
    /// The number of the first item.
    pub(crate) first: u64,
    /// End after this many items.
    pub(crate) limit: Option<u64>,
    /// End when no item came for this long.
    pub(crate) wait: Option<Duration>,
    pub(crate) format: Format,
    pub(crate) with_images: bool,
}

pub(crate) struct Feed {
    shared: Arc<Shared>,
    options: FeedOptions,
    progress: watch::Receiver<Progress>,
    reader: Option<JournalReader>,
    next: u64,
    is_over: bool,
    _consumer: OwnedSemaphorePermit,
}

/// What comes next.
enum Next {
    Item,
    End(EndReason),
    Heartbeat,
    Nothing,
}

impl Feed {
    pub(crate) fn start(
        shared: Arc<Shared>,
        options: FeedOptions,
        consumer: OwnedSemaphorePermit,
    ) -> impl Stream<Item = Result<Bytes, String>> {
        shared.progress.send_if_modified(|progress| !std::mem::replace(&mut progress.has_consumer, true));
        let (progress, next) = (shared.progress.subscribe(), options.first);
        let feed =
            Self { shared, options, progress, reader: None, next, is_over: false, _consumer: consumer };
        stream::unfold(feed, |mut feed| async move { Some((feed.chunk().await?, feed)) })
    }

    async fn chunk(&mut self) -> Option<Result<Bytes, String>> {
        let is_enough = self.options.limit.is_some_and(|limit| self.next - self.options.first >= limit);
        if self.is_over || is_enough {
            return None;
        }
        let encoded = match self.wait().await {
            Next::Nothing => return None,
            Next::Heartbeat => self.options.format.encode(&Message::Heartbeat),
            Next::End(reason) => {
                self.is_over = true;
                self.shared.progress.send_modify(|progress| progress.is_end_sent = true);
                let end = Message::End { reason: reason.as_str(), detail: reason.detail() };
                self.options.format.encode(&end)
            }
            Next::Item => self.item().await,
        };
        let encoded = encoded.or_else(|detail| {
            self.is_over = true;
            tracing::error!("the stream of trajectories ends: {detail}");
            self.options.format.encode(&Message::Error { detail })
        });
        Some(encoded.map(Bytes::from))
    }

    /// Waits until there is something to send.
    async fn wait(&mut self) -> Next {
        let since = Instant::now();
        let heartbeat = since + HEARTBEAT_INTERVAL;
        let end = self.options.wait.map(|wait| since + wait);
        loop {
            let progress = self.progress.borrow_and_update().clone();
            if self.next <= progress.available {
                return Next::Item;
            }
            if let Some(reason) = progress.end {
                return Next::End(reason);
            }
            tokio::select! {
                changed = self.progress.changed() => if changed.is_err() { return Next::Nothing },
                () = tokio::time::sleep_until(end.unwrap_or(heartbeat).min(heartbeat)) => {
                    let is_over = end.is_some_and(|end| end <= Instant::now());
                    return if is_over { Next::Nothing } else { Next::Heartbeat };
                }
            }
        }
    }

    async fn item(&mut self) -> Result<Vec<u8>, String> {
        let (shared, mut reader, position) = (Arc::clone(&self.shared), self.reader.take(), self.next);
        let FeedOptions { format, with_images, .. } = self.options;
        let read = tokio::task::spawn_blocking(move || {
            let item = shared.read_item(&mut reader, position, format, with_images);
            (item, reader)
        });
        let (item, reader) = read.await.map_err(|error| error.to_string())?;
        self.reader = reader;
        self.next += 1;
        item
    }
}
