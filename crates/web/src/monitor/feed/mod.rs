//! The event stream that open pages receive. Each change of the run is encoded once for all subscribers, at most four times
//! a second and only while a page is open. A page that reconnects gets what it missed; one that is too slow gets a new
//! snapshot, so the run never waits for a page.

mod history;
mod subscriber;

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use serde_json::{Map, Value};
use tokio::sync::broadcast::{self, Receiver, Sender};

use super::{MonitoredRun, encoding, nodes::Nodes, status};
use history::{History, Message};
use subscriber::Subscriber;

const UPDATE_INTERVAL: Duration = Duration::from_millis(250);
/// Number of update intervals (together one second) after which statistics are sent although the grid did not change: times
/// advance, and the message shows that the connection is alive.
const IDLE_INTERVALS: u32 = 4;
/// Messages that a subscriber may fall behind.
const MAX_LAG: usize = 16;
const MAX_SUBSCRIBERS: usize = 256;
/// The event of the last message: the run has ended.
const END_EVENT: &str = "over";

struct State {
    /// The grid as last sent.
    codes: Vec<u16>,
    history: History,
    last_update: Option<Instant>,
    /// Updates in a row without a change of the grid.
    unchanged: u32,
    /// A task sends updates at the moment.
    is_updating: bool,
    is_closed: bool,
}

/// The event stream of one run.
pub(super) struct Feed {
    monitored: MonitoredRun,
    /// Whether the run belongs to a training loop.
    pub(super) has_loop: bool,
    /// Distinguishes this run from a later one at the same address.
    run_id: String,
    nodes: Arc<Nodes>,
    sender: Sender<Message>,
    state: Mutex<State>,
    /// The encoded list of tasks and its revision.
    task_list: Mutex<Option<(u64, Bytes)>>,
}

impl Feed {
    pub(super) fn new(monitored: MonitoredRun, has_loop: bool) -> Arc<Self> {
        let state = State {
            codes: Vec::new(),
            history: History::default(),
            last_update: None,
            unchanged: 0,
            is_updating: false,
            is_closed: false,
        };
        Arc::new(Self {
            nodes: Nodes::new(monitored.farm.clone()),
            monitored,
            has_loop,
            run_id: uuid::Uuid::new_v4().simple().to_string()[..8].to_owned(),
            sender: broadcast::channel(MAX_LAG).0,
            state: Mutex::new(state),
            task_list: Mutex::default(),
        })
    }

    pub(super) const fn monitored(&self) -> &MonitoredRun {
        &self.monitored
    }

    pub(super) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the list of tasks, which is encoded once for each revision.
    pub(super) fn task_list(&self, encode: impl FnOnce(u64) -> Bytes) -> Bytes {
        let revision = self.monitored.run.revision();
        let mut list = self.task_list.lock().unwrap_or_else(PoisonError::into_inner);
        match &*list {
            Some((encoded, bytes)) if *encoded == revision => bytes.clone(),
            _ => list.insert((revision, encode(revision))).1.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn statistics(&self) -> Value {
        status::statistics(&self.monitored, &self.nodes.latest())
    }

    fn message_id(&self, number: u64) -> String {
        format!("{}-{number}", self.run_id)
    }

    /// Reads the run's state and sends what changed since the last update.
    fn update(&self, state: &mut State) {
        let codes: Vec<u16> = self.monitored.run.cells().iter().map(encoding::encode_cell).collect();
        let delta = encoding::encode_delta(&state.codes, &codes);
        state.last_update = Some(Instant::now());
        state.unchanged = if delta.is_some() { 0 } else { state.unchanged + 1 };
        if delta.is_none() && !state.unchanged.is_multiple_of(IDLE_INTERVALS) {
            return;
        }
        let mut body = delta.unwrap_or_default();
        body.insert("statistics".to_owned(), self.statistics());
        state.codes = codes;
        self.send(state, "delta", body);
    }

    fn send(&self, state: &mut State, event: &str, body: Map<String, Value>) {
        let number = state.history.last_number() + 1;
        let text = encoding::sse_message(event, &self.message_id(number), &Value::Object(body)).into();
        let message = Message { number, text, is_last: event == END_EVENT };
        state.history.push(message.clone());
        // Fails only when there is no subscriber.
        let _ = self.sender.send(message);
    }

    fn snapshot(&self, state: &mut State) -> Bytes {
        if state.last_update.is_none_or(|last| last.elapsed() >= UPDATE_INTERVAL) {
            self.update(state);
        }
        let mut body = encoding::encode_full(&state.codes);
        body.insert("run".to_owned(), self.run_id.as_str().into());
        body.insert("statistics".to_owned(), self.statistics());
        let id = self.message_id(state.history.last_number());
        let end = if state.is_closed { format!("event: {END_EVENT}\ndata: {{}}\n\n") } else { String::new() };
        format!("retry: 2000\n{}{end}", encoding::sse_message("snapshot", &id, &Value::Object(body))).into()
    }

    /// Returns the messages a subscriber needs first and a receiver for those that follow. With the id of the last message
    /// the page received, the first messages are those it missed; otherwise they are a snapshot.
    fn join(&self, last_id: Option<&str>) -> (VecDeque<Bytes>, Receiver<Message>) {
        let mut state = self.state();
        let seen =
            last_id.and_then(|id| id.strip_prefix(&self.run_id)?.strip_prefix('-')?.parse::<u64>().ok());
        let missed = seen.and_then(|seen| state.history.after(seen));
        let first = missed.unwrap_or_else(|| VecDeque::from([self.snapshot(&mut state)]));
        // Subscribe only now: making the snapshot may have sent an update that the snapshot already contains.
        (first, self.sender.subscribe())
    }

    /// Opens the stream for a page; `None` when too many pages are open already.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        last_id: Option<&str>,
    ) -> Option<impl Stream<Item = Result<Bytes, Infallible>> + Send + use<>> {
        if self.sender.receiver_count() >= MAX_SUBSCRIBERS {
            return None;
        }
        let (pending, receiver) = self.join(last_id);
        self.ensure_updating();
        let subscriber = Subscriber { feed: Arc::clone(self), pending, receiver, has_ended: false };
        Some(stream::unfold(subscriber, |mut subscriber| async move {
            let next = subscriber.next().await?;
            Some((Ok(next), subscriber))
        }))
    }

    /// Starts the update task unless it runs. One task serves all subscribers and ends with the last of them.
    fn ensure_updating(self: &Arc<Self>) {
        let mut state = self.state();
        if !state.is_updating && !state.is_closed {
            state.is_updating = true;
            tokio::spawn(send_updates(Arc::downgrade(self)));
        }
    }

    /// Ends the stream: sends the final state and the message that the run has ended.
    pub(super) fn close(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_closed, true) {
            return;
        }
        // Makes the update send statistics even if the grid did not change.
        state.unchanged = IDLE_INTERVALS - 1;
        self.update(&mut state);
        self.send(&mut state, END_EVENT, Map::new());
    }
}

async fn send_updates(feed: Weak<Feed>) {
    let mut interval = tokio::time::interval(UPDATE_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let Some(feed) = feed.upgrade() else { return };
        feed.nodes.refresh();
        let mut state = feed.state();
        if state.is_closed || feed.sender.receiver_count() == 0 {
            state.is_updating = false;
            return;
        }
        feed.update(&mut state);
    }
}

#[cfg(test)]
mod tests;
