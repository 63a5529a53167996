//! Keeps the last lines that the browser wrote to its standard error, for error messages.

use std::{
    collections::VecDeque,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{io::AsyncBufReadExt, net::unix::pipe, sync::watch};

const MAX_LINES: usize = 8;
const MAX_LINE_CHARS: usize = 400;
/// The last lines may still be in the pipe when the browser has exited. The wait is bounded because child processes of
/// the browser can keep the pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub(crate) struct StderrLog {
    lines: Arc<Mutex<VecDeque<String>>>,
    ended: watch::Sender<bool>,
}

impl StderrLog {
    pub(crate) fn new() -> Self {
        Self { lines: Arc::default(), ended: watch::Sender::new(false) }
    }

    /// Reads `stderr` in a background task until it ends.
    pub(crate) fn follow(&self, stderr: OwnedFd) {
        let Ok(stderr) = pipe::Receiver::from_owned_fd(stderr) else { return };
        let log = self.clone();
        tokio::spawn(async move {
            let mut lines = tokio::io::BufReader::new(stderr).split(b'\n');
            while let Ok(Some(line)) = lines.next_segment().await {
                log.push(&line);
            }
            log.ended.send_replace(true);
        });
    }

    fn push(&self, line: &[u8]) {
        let line: String =
            String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).take(MAX_LINE_CHARS).collect();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Returns the last lines, joined by ` | `.
    pub(crate) async fn recent_lines(&self) -> Arc<str> {
        let mut ended = self.ended.subscribe();
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, ended.wait_for(|ended| *ended)).await;
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ").into()
    }
}
