//! Mouse and keyboard input: trusted events through the browser's own input pipeline. This module sends the events and
//! waits until the page has handled them; `mouse` and `keyboard` build them.

mod keyboard;
mod keys;
pub(crate) mod mouse;

use std::time::Duration;

use cdp::{CallError, PendingCall, Session};

use crate::error::BrowserError;

/// The input devices of one page.
pub(crate) struct Input<'a> {
    session: &'a Session,
    timeout: Duration,
}

impl<'a> Input<'a> {
    pub(crate) fn new(session: &'a Session, timeout: Duration) -> Self {
        Self { session, timeout }
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
