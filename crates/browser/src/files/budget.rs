//! How much space the files of sessions may take.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

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
            return Err(format!(
                "the files of a session may have {} bytes together (--max-lease-files)",
                self.session_bytes
            ));
        }
        self.reserve_on_node(bytes)?;
        *used += bytes;
        Ok(())
    }

    fn reserve_on_node(&self, bytes: u64) -> Result<(), String> {
        let reserved = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(used + bytes).filter(|used| *used <= self.node_bytes)
        });
        reserved.map(drop).map_err(|_| {
            let bound = self.node_bytes;
            format!(
                "the files of all sessions of this node may have {bound} bytes together (--max-node-files)"
            )
        })
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

/// The space of a file that only the bound of the node limits. Dropping it gives the space back.
pub struct NodeSpace {
    budget: Arc<FileBudget>,
    bytes: u64,
}

impl NodeSpace {
    pub const fn new(budget: Arc<FileBudget>) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Reserves more space. Otherwise returns the bound that forbids it.
    pub fn grow(&mut self, bytes: u64) -> Result<(), String> {
        self.budget.reserve_on_node(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for NodeSpace {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_of_the_node_is_shared_and_given_back() {
        let budget = Arc::new(FileBudget::new(10, 15));
        let mut of_a_session = 0;
        budget.reserve(&mut of_a_session, 10).unwrap();
        let mut space = NodeSpace::new(Arc::clone(&budget));
        space.grow(5).unwrap();
        let error = space.grow(1).unwrap_err();
        assert!(error.contains("all sessions of this node may have 15 bytes"), "{error}");
        assert_eq!(budget.used(), 15);
        drop(space);
        assert_eq!(budget.used(), 10);
    }
}
