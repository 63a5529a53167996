//! Mouse and keyboard input: trusted events through the browser's own input pipeline. This module sends the events and
//! waits until the page has handled them; `mouse` and `keyboard` build them.

mod keyboard;
mod keys;
pub(crate) mod mouse;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cdp::{CallError, PendingCall, Session};
use proto::command::Point;

use crate::error::BrowserError;

/// Where the mouse is, and the buttons and modifier keys that are pressed between commands.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<HeldState>);

/// The bits of the protocol's fields `buttons` and `modifiers`.
#[derive(Debug, Default)]
struct HeldState {
    buttons: u8,
    modifiers: u32,
    mouse: MousePosition,
}

/// Where the last mouse event was; before the first one, the top left corner.
#[derive(Clone, Copy, Debug)]
struct MousePosition(Point);

impl Default for MousePosition {
    fn default() -> Self {
        Self(Point { x: 0.0, y: 0.0 })
    }
}

impl Held {
    /// The state of a page that replaces another: no key or button is pressed, and the mouse is where it was.
    pub(crate) fn with_mouse_of(other: &Self) -> Self {
        let mouse = other.lock().mouse;
        Self(Mutex::new(HeldState { mouse, ..HeldState::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, HeldState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The input devices of one page.
pub(crate) struct Input<'a> {
    session: &'a Session,
    held: &'a Held,
    timeout: Duration,
}

impl<'a> Input<'a> {
    pub(crate) fn new(session: &'a Session, held: &'a Held, timeout: Duration) -> Self {
        Self { session, held, timeout }
    }

    fn held(&self) -> MutexGuard<'_, HeldState> {
        self.held.lock()
    }

    /// Returns where the mouse is.
    pub(crate) fn mouse_position(&self) -> Point {
        self.held().mouse.0
    }

    /// Waits until the page has handled the events. A hung page never does.
    async fn wait_handled(&self, events: impl IntoIterator<Item = PendingCall>) -> Result<(), BrowserError> {
        // Collected first: the iterator may be lazy, and all events must be sent before the first is awaited.
        let events: Vec<PendingCall> = events.into_iter().collect();
        for event in events {
            match event.within(self.timeout).await {
                Ok(_) => {}
                Err(CallError::Deadline { after, .. }) => {
                    return Err(BrowserError::Timeout {
                        operation: "it does not react to input".into(),
                        after,
                    });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
