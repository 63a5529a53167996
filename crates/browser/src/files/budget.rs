//! How much space the files of sessions may take.

use std::sync::atomic::{AtomicU64, Ordering};

/// The space that files may take, and what all sessions of a node take now.
#[derive(Debug)]
pub struct FileBudget {
    /// The most bytes of one session.
    pub session_bytes: u64,
    /// The most bytes of all sessions together.
    pub node_bytes: u64,
    used: AtomicU64,
}

impl FileBudget {
    pub fn new(session_bytes: u64, node_bytes: u64) -> Self {
        Self { session_bytes, node_bytes, used: AtomicU64::new(0) }
    }

    /// Reserves space for a session that has already used some. Otherwise returns the bound that forbids it.
    pub(super) fn reserve(&self, used: &mut u64, bytes: u64) -> Result<(), String> {
        if *used + bytes > self.session_bytes {
            return Err(format!("the files of a session may have {} bytes together", self.session_bytes));
        }
        let reserved = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(used + bytes).filter(|used| *used <= self.node_bytes)
        });
        if reserved.is_err() {
            let bound = self.node_bytes;
            return Err(format!("the files of all sessions of this node may have {bound} bytes together"));
        }
        *used += bytes;
        Ok(())
    }

    pub(super) fn give_back(&self, used: &mut u64, bytes: u64) {
        *used -= bytes;
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The bytes that the files of all sessions take.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl Default for FileBudget {
    fn default() -> Self {
        Self::new(64 << 20, 1 << 30)
    }
}
