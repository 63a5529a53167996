//! One viewer: sends it frames, page, console and lease, and passes on its input.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use bytes::Bytes;
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use proto::Command;
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    FOLLOW_TIME, LiveCast, MAX_MESSAGE_BYTES, MAX_VIEWERS,
    cast::WaitingGuard,
    message::{self, ViewerMessage},
    rate::MessageRate,
};
use crate::{
    cdp::CloseReason,
    pool::{Operation, ViewerGuard},
};

/// How often new console messages and a changed page are sent.
const TICK: Duration = Duration::from_millis(100);
const TICKS_PER_LEASE_STATE: u32 = 10;
const TICKS_PER_PING: u32 = 200;
/// A viewer that reads nothing for this long is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// A viewer that sends nothing for this long, not even an answer to pings, is gone.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a viewer may take to answer the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

const TOO_MANY: CloseReason = CloseReason {
    code: 1013,
    text: "the lease has 8 viewers, the most it can have; close one of them and reload this page",
};
const TOO_LARGE: CloseReason = CloseReason { code: 1009, text: "a message is larger than 16 KiB" };
const TOO_FAST: CloseReason = CloseReason { code: 1008, text: "more than 200 messages per second" };
const LEASE_LOST: CloseReason = CloseReason { code: 1001, text: "the browser of the lease is lost" };
const READ_ONLY: &str =
    "this link is for watching only; the address live_control_url of the lease accepts input";

/// Serves a viewer until it disconnects or its lease ends.
pub(crate) async fn run(guard: ViewerGuard, socket: WebSocket) {
    let (sink, mut stream) = socket.split();
    let mut sink = Sink(sink);
    let ended = guard.ended();
    let serving = async {
        if guard.usage().viewers > MAX_VIEWERS {
            return TOO_MANY;
        }
        let cast = match guard.cast().await {
            Ok(cast) => cast,
            Err(error) => {
                tracing::debug!(%error, "cannot open the screencast of a lease");
                return CloseReason::BROWSER_GONE;
            }
        };
        let mut viewer = Viewer::new(&guard, cast);
        viewer.serve(&mut sink, &mut stream).await
    };
    let reason = tokio::select! {
        reason = serving => reason,
        () = ended => if guard.is_lost() { LEASE_LOST } else { CloseReason::LEASE_ENDED },
    };
    drop(guard);
    sink.close(reason, &mut stream).await;
}

/// The sending half of the WebSocket.
struct Sink(SplitSink<WebSocket, Message>);

impl Sink {
    async fn send(&mut self, message: Message) -> Result<(), CloseReason> {
        match timeout(SEND_TIMEOUT, self.0.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(CloseReason::CLOSED_BY_CLIENT),
            Err(_) => Err(CloseReason::TOO_SLOW),
        }
    }

    async fn send_json(&mut self, value: &Value) -> Result<(), CloseReason> {
        self.send(Message::Text(value.to_string().into())).await
    }

    /// Tells the viewer why it is disconnected. Waits for its answer: a socket that is closed while messages are unread is
    /// reset, and the reason would be lost.
    async fn close(mut self, reason: CloseReason, stream: &mut SplitStream<WebSocket>) {
        let frame = CloseFrame { code: reason.code, reason: reason.text.into() };
        let farewell = async {
            if self.0.send(Message::Close(Some(frame))).await.is_ok() {
                while let Some(Ok(_)) = stream.next().await {}
            }
        };
        let _ = timeout(CLOSE_TIMEOUT, farewell).await;
    }
}

struct Viewer<'a> {
    guard: &'a ViewerGuard,
    cast: Arc<LiveCast>,
    /// Present while the viewer can take a frame.
    waiting: Option<WaitingGuard>,
    rate: MessageRate,
    console_position: u64,
    last_heard: Instant,
    last_input: Option<Instant>,
    /// The results of the commands of the viewer.
    replies: (mpsc::Sender<Value>, mpsc::Receiver<Value>),
    /// A command of the viewer runs.
    is_acting: Arc<AtomicBool>,
}

impl<'a> Viewer<'a> {
    fn new(guard: &'a ViewerGuard, cast: Arc<LiveCast>) -> Self {
        let now = Instant::now();
        Self {
            guard,
            waiting: Some(cast.hub().wait_for_frame()),
            cast,
            rate: MessageRate::new(now),
            console_position: 0,
            last_heard: now,
            last_input: None,
            replies: mpsc::channel(8),
            is_acting: Arc::default(),
        }
    }

    async fn serve(&mut self, sink: &mut Sink, stream: &mut SplitStream<WebSocket>) -> CloseReason {
        match self.exchange(sink, stream).await {
            Ok(()) => CloseReason::CLOSED_BY_CLIENT,
            Err(reason) => reason,
        }
    }

    async fn exchange(
        &mut self,
        sink: &mut Sink,
        stream: &mut SplitStream<WebSocket>,
    ) -> Result<(), CloseReason> {
        sink.send_json(&message::hello(self.guard)).await?;
        let mut frames = self.cast.hub().frames();
        let mut pages = self.cast.hub().pages();
        frames.mark_changed();
        pages.mark_changed();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = 0_u32;
        loop {
            tokio::select! {
                Ok(()) = frames.changed(), if self.waiting.is_some() => {
                    let frame = frames.borrow_and_update().clone();
                    self.send_frame(sink, frame).await?;
                }
                received = stream.next() => match received {
                    Some(Ok(received)) => self.receive(sink, received).await?,
                    Some(Err(_)) | None => return Ok(()),
                },
                Some(reply) = self.replies.1.recv() => sink.send_json(&reply).await?,
                _ = tick.tick() => {
                    if pages.has_changed().unwrap_or(false) {
                        let page = pages.borrow_and_update().clone();
                        sink.send_json(&message::page(&page)).await?;
                    }
                    self.report(sink, ticks).await?;
                    ticks = ticks.wrapping_add(1);
                }
            }
        }
    }

    async fn send_frame(&mut self, sink: &mut Sink, frame: Option<Bytes>) -> Result<(), CloseReason> {
        let Some(frame) = frame else { return Ok(()) };
        self.waiting = None;
        sink.send(Message::Binary(frame)).await
    }

    /// Sends what has changed since the last tick.
    async fn report(&mut self, sink: &mut Sink, ticks: u32) -> Result<(), CloseReason> {
        let new = self.cast.hub().console().since(self.console_position);
        if let Some(new) = new {
            self.console_position = new.next;
            sink.send_json(&message::console(&new)).await?;
        }
        if ticks.is_multiple_of(TICKS_PER_LEASE_STATE) {
            sink.send_json(&message::lease(&self.guard.usage())).await?;
        }
        if ticks % TICKS_PER_PING == TICKS_PER_PING - 1 {
            sink.send(Message::Ping(Bytes::new())).await?;
        }
        if self.last_heard.elapsed() > SILENCE_TIMEOUT {
            return Err(CloseReason::SILENT);
        }
        self.follow_windows();
        Ok(())
    }

    async fn receive(&mut self, sink: &mut Sink, received: Message) -> Result<(), CloseReason> {
        self.last_heard = Instant::now();
        let text = match received {
            Message::Text(text) => text,
            Message::Binary(_) => return Err(CloseReason::NOT_TEXT),
            Message::Close(_) => return Err(CloseReason::CLOSED_BY_CLIENT),
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
        };
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(TOO_LARGE);
        }
        if !self.rate.count(self.last_heard) {
            return Err(TOO_FAST);
        }
        let outcome = ViewerMessage::parse(&text).and_then(|message| self.handle(message));
        match outcome {
            Ok(()) => Ok(()),
            Err(detail) => sink.send_json(&message::error(&detail)).await,
        }
    }

    /// Does what a viewer asks for. The error is for the person.
    fn handle(&mut self, message: ViewerMessage) -> Result<(), String> {
        if message == ViewerMessage::Ack {
            self.waiting.get_or_insert_with(|| self.cast.hub().wait_for_frame());
            return Ok(());
        }
        if !self.guard.can_control() {
            return Err(READ_ONLY.to_owned());
        }
        self.guard.touch();
        self.last_input = Some(self.last_heard);
        match message {
            ViewerMessage::Ack => Ok(()),
            ViewerMessage::Input(input) if self.cast.send_input(&input) => Ok(()),
            ViewerMessage::Input(_) => Err("no page is shown at the moment; try again".to_owned()),
            ViewerMessage::Command(command) => self.perform(command),
        }
    }

    /// Carries out a command under the rules of `/execute` and reports its end to the viewer.
    fn perform(&self, command: Command) -> Result<(), String> {
        self.spawn(Operation::Execute(command))
            .then_some(())
            .ok_or_else(|| "the command before has not ended yet; wait for it".to_owned())
    }

    /// Shows windows that the person has opened, and the page behind one that was closed.
    fn follow_windows(&self) {
        let is_recent = self.last_input.is_some_and(|last| last.elapsed() < FOLLOW_TIME);
        if is_recent && self.guard.tenant().context().has_changed_windows() {
            self.spawn(Operation::FollowWindows);
        }
    }

    /// Starts an operation unless one of this viewer runs. Returns whether it was started.
    fn spawn(&self, operation: Operation) -> bool {
        if self.is_acting.swap(true, Ordering::AcqRel) {
            return false;
        }
        let (pool, id) = (self.guard.pool().clone(), *self.guard.id());
        let (is_acting, replies) = (Arc::clone(&self.is_acting), self.replies.0.clone());
        let is_command = matches!(operation, Operation::Execute(_));
        self.guard.pool().tasks().spawn_until_stopped("live command", async move {
            let outcome = pool.perform(&id, operation).await;
            is_acting.store(false, Ordering::Release);
            match outcome {
                Err(error) => drop(replies.try_send(message::error(&error.to_string()))),
                Ok(_) if is_command => drop(replies.try_send(message::done())),
                Ok(_) => {}
            }
        });
        true
    }
}
