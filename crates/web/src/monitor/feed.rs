//! The stream that pages watch. What changed is worked out and written down once for all of them, at most four times a
//! second and only while somebody looks; whoever comes back is told what they missed, whoever is too slow is told afresh.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use serde_json::Value;
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

use super::{Watched, figures, frame, nodes::Nodes};

const TICK: Duration = Duration::from_millis(250);
/// Without a change the figures still come once a second: clocks move, and a connection shows that it is alive.
const QUIET_TICKS: u32 = 4;
/// Messages a viewer may be behind, and messages kept for those who come back.
const BEHIND: usize = 16;
const KEPT: usize = 120;
const KEPT_BYTES: usize = 4 << 20;
const MOST_VIEWERS: usize = 256;

#[derive(Clone)]
struct Message {
    number: u64,
    text: Bytes,
}

struct State {
    number: u64,
    codes: Vec<u16>,
    kept: VecDeque<Message>,
    kept_bytes: usize,
    advanced: Option<Instant>,
    quiet: u32,
    ticking: bool,
    closed: bool,
}

pub(super) struct Feed {
    watched: Watched,
    /// Tells this run from the next one at the same address.
    run: String,
    nodes: Arc<Nodes>,
    sender: Sender<Message>,
    state: Mutex<State>,
    tasks: std::sync::OnceLock<Bytes>,
}

impl Feed {
    pub(super) fn new(watched: Watched) -> Arc<Self> {
        let state = State {
            number: 0,
            codes: Vec::new(),
            kept: VecDeque::new(),
            kept_bytes: 0,
            advanced: None,
            quiet: 0,
            ticking: false,
            closed: false,
        };
        Arc::new(Self {
            nodes: Nodes::new(watched.farm.clone()),
            watched,
            run: uuid::Uuid::new_v4().simple().to_string()[..8].to_owned(),
            sender: broadcast::channel(BEHIND).0,
            state: Mutex::new(state),
            tasks: std::sync::OnceLock::new(),
        })
    }

    pub(super) const fn watched(&self) -> &Watched {
        &self.watched
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// The list of tasks, written down once.
    pub(super) fn tasks(&self, write: impl FnOnce() -> Bytes) -> Bytes {
        self.tasks.get_or_init(write).clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn figures(&self) -> Value {
        figures::live(&self.watched, &self.nodes.latest())
    }

    /// Looks at the board, and tells everyone what is new.
    fn advance(&self, state: &mut State) {
        let codes: Vec<u16> = self.watched.board.cells().iter().map(frame::code).collect();
        let delta = frame::delta(&state.codes, &codes);
        state.advanced = Some(Instant::now());
        state.quiet = if delta.is_some() { 0 } else { state.quiet + 1 };
        if delta.is_none() && !state.quiet.is_multiple_of(QUIET_TICKS) {
            return;
        }
        let mut body = delta.unwrap_or_default();
        body.insert("figures".to_owned(), self.figures());
        state.codes = codes;
        self.tell(state, "delta", &Value::Object(body));
    }

    fn tell(&self, state: &mut State, event: &str, body: &Value) {
        state.number += 1;
        let id = format!("{}-{}", self.run, state.number);
        let message = Message { number: state.number, text: frame::message(event, &id, body).into() };
        state.kept_bytes += message.text.len();
        state.kept.push_back(message.clone());
        while state.kept.len() > KEPT || state.kept_bytes > KEPT_BYTES {
            let Some(oldest) = state.kept.pop_front() else { break };
            state.kept_bytes -= oldest.text.len();
        }
        // Nobody listening is no trouble.
        let _ = self.sender.send(message);
    }

    fn snapshot(&self, state: &mut State) -> Bytes {
        if state.advanced.is_none_or(|last| last.elapsed() >= TICK) {
            self.advance(state);
        }
        let mut body = frame::full(&state.codes);
        body.insert("run".to_owned(), self.run.as_str().into());
        body.insert("figures".to_owned(), self.figures());
        let id = format!("{}-{}", self.run, state.number);
        let over = if state.closed { "event: over\ndata: {}\n\n" } else { "" };
        format!("retry: 2000\n{}{over}", frame::message("snapshot", &id, &Value::Object(body))).into()
    }

    /// What somebody needs first, and what comes after it. With the id of the message they had last, only what they missed.
    fn join(&self, last: Option<&str>) -> (VecDeque<Bytes>, Receiver<Message>) {
        let mut state = self.state();
        let seen = last.and_then(|id| id.strip_prefix(&self.run)?.strip_prefix('-')?.parse::<u64>().ok());
        let first = match seen.filter(|seen| state.has_all_after(*seen)) {
            Some(seen) => {
                state.kept.iter().filter(|one| one.number > seen).map(|one| one.text.clone()).collect()
            }
            None => VecDeque::from([self.snapshot(&mut state)]),
        };
        // After the snapshot, whose own making may have told everyone something that is in it already.
        (first, self.sender.subscribe())
    }

    /// `None` when too many watch already.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        last: Option<&str>,
    ) -> Option<impl Stream<Item = Result<Bytes, Infallible>> + Send + use<>> {
        if self.sender.receiver_count() >= MOST_VIEWERS {
            return None;
        }
        let (first, receiver) = self.join(last);
        self.keep_ticking();
        let viewer = Viewer { feed: Arc::clone(self), first, receiver, over: false };
        Some(stream::unfold(viewer, |mut viewer| async move {
            let next = viewer.next().await?;
            Some((Ok(next), viewer))
        }))
    }

    /// One task works for all viewers, and only while there are any.
    fn keep_ticking(self: &Arc<Self>) {
        let mut state = self.state();
        if !state.ticking && !state.closed {
            state.ticking = true;
            tokio::spawn(tick(Arc::downgrade(self)));
        }
    }

    /// The run is over: says how it stands, and that nothing more will come.
    pub(super) fn close(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.closed, true) {
            return;
        }
        state.quiet = QUIET_TICKS - 1;
        self.advance(&mut state);
        self.tell(&mut state, "over", &Value::Object(serde_json::Map::new()));
    }
}

impl State {
    fn has_all_after(&self, seen: u64) -> bool {
        let oldest = self.kept.front().map_or(self.number + 1, |oldest| oldest.number);
        seen <= self.number && seen + 1 >= oldest
    }
}

async fn tick(feed: Weak<Feed>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(feed) = feed.upgrade() else { return };
        feed.nodes.refresh();
        let mut state = feed.state();
        if state.closed || feed.sender.receiver_count() == 0 {
            state.ticking = false;
            return;
        }
        feed.advance(&mut state);
    }
}

struct Viewer {
    feed: Arc<Feed>,
    first: VecDeque<Bytes>,
    receiver: Receiver<Message>,
    over: bool,
}

impl Viewer {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.pop_front() {
            return Some(first);
        }
        if self.over {
            return None;
        }
        match self.receiver.recv().await {
            Ok(message) => {
                self.over = message.text.windows(11).take(64).any(|words| words == b"event: over");
                Some(message.text)
            }
            Err(RecvError::Lagged(_)) => {
                let (first, receiver) = self.feed.join(None);
                (self.first, self.receiver) = (first, receiver);
                self.first.pop_front()
            }
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use rollout::run::{
        event::{Event, Listener, Stage},
        state::Board,
    };

    use super::*;

    fn feed(tasks: usize) -> Arc<Feed> {
        let board = Arc::new(Board::new(0..tasks));
        Feed::new(Watched {
            board,
            about: super::super::About::default(),
            policy: None,
            judge_places: 1,
            farm: None,
        })
    }

    fn step(feed: &Feed, index: usize, step: usize) {
        feed.watched.board.event(&Event::Stage { index, step, stage: Stage::Policy });
    }

    fn words(text: &Bytes) -> (String, Value) {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let line =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
        (line("event: ") + " " + &line("id: "), serde_json::from_str(&line("data: ")).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_comes_first_then_only_what_changes() {
        let feed = feed(50);
        let mut stream = Box::pin(feed.subscribe(None).unwrap());
        let (head, body) = words(&stream.next().await.unwrap().unwrap());
        assert!(
            head.starts_with("snapshot") && body["full"].is_string() && body["figures"]["tasks"] == 50,
            "{head} {body}"
        );
        step(&feed, 7, 1);
        let body = loop {
            let (_, body) = words(&stream.next().await.unwrap().unwrap());
            if body.get("at").is_some() {
                break body;
            }
        };
        assert_eq!((&body["at"], &body["to"]), (&serde_json::json!([7]), &serde_json::json!([6 | (1 << 7)])));
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_back_gets_what_was_missed_and_who_was_away_too_long_a_snapshot() {
        let feed = feed(50);
        feed.advance(&mut feed.state());
        let seen = format!("{}-{}", feed.run, feed.state().number);
        step(&feed, 3, 2);
        feed.advance(&mut feed.state());
        let (first, _receiver) = feed.join(Some(&seen));
        assert_eq!(first.len(), 1);
        assert_eq!(words(&first[0]).1["at"], serde_json::json!([3]));
        for round in 0..KEPT + 5 {
            step(&feed, 4, round);
            feed.advance(&mut feed.state());
        }
        for stale in [seen.as_str(), "other-1", "nonsense", &format!("{}-999999", feed.run)] {
            let (first, _receiver) = feed.join(Some(stale));
            assert!(words(&first[0]).0.starts_with("snapshot"), "{stale}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_too_slowly_starts_from_a_snapshot_again() {
        let feed = feed(50);
        let (first, receiver) = feed.join(None);
        let mut viewer = Viewer { feed: Arc::clone(&feed), first, receiver, over: false };
        viewer.next().await.unwrap();
        for round in 0..BEHIND + 3 {
            step(&feed, 1, round);
            feed.advance(&mut feed.state());
        }
        assert!(words(&viewer.next().await.unwrap()).0.starts_with("snapshot"));
        assert!(feed.state().kept.len() <= KEPT);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_worked_out_while_nobody_looks_and_the_end_is_told() {
        let feed = feed(2);
        let mut stream = Box::pin(feed.subscribe(None).unwrap());
        stream.next().await.unwrap().unwrap();
        drop(stream);
        tokio::time::sleep(TICK * 3).await;
        assert!(!feed.state().ticking);
        let mut stream = Box::pin(feed.subscribe(None).unwrap());
        stream.next().await.unwrap().unwrap();
        feed.close();
        let mut said = Vec::new();
        while let Some(Ok(text)) = stream.next().await {
            said.push(words(&text).0);
        }
        assert!(said.last().unwrap().starts_with("over"), "{said:?}");
    }
}
