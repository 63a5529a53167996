//! Limits on concurrent requests to the farm: each kind of operation has its own number of permits. Further requests wait in
//! order, up to a timeout.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::config::HttpPools;

/// A kind of operation with its own permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Metadata,
    Navigate,
    Allocate,
    Release,
    Screenshot,
    AcTree,
    PageMetadata,
    Execute,
}

#[derive(Clone)]
pub struct RequestPermits {
    semaphores: Arc<[Semaphore; 8]>,
    wait_timeout: Duration,
}

impl RequestPermits {
    pub fn new(sizes: &HttpPools, wait_timeout: Duration) -> Self {
        let sizes = [
            sizes.metadata,
            sizes.navigate,
            sizes.allocate,
            sizes.release,
            sizes.screenshot,
            sizes.ac_tree,
            sizes.page_metadata,
            sizes.execute,
        ];
        Self { semaphores: Arc::new(sizes.map(|size| Semaphore::new(size.max(1)))), wait_timeout }
    }

    /// Waits for a permit; returns `None` after the timeout.
    pub async fn acquire(&self, operation: Operation) -> Option<SemaphorePermit<'_>> {
        let semaphore = &self.semaphores[operation as usize];
        tokio::time::timeout(self.wait_timeout, semaphore.acquire()).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> HttpPools {
        HttpPools {
            metadata: 1,
            navigate: 1,
            allocate: 1,
            release: 1,
            screenshot: 2,
            ac_tree: 1,
            page_metadata: 1,
            execute: 1,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn exhausted_permits_time_out() {
        let permits = RequestPermits::new(&sizes(), Duration::from_secs(5));
        let first = permits.acquire(Operation::Screenshot).await.unwrap();
        let second = permits.acquire(Operation::Screenshot).await.unwrap();
        assert!(permits.acquire(Operation::Screenshot).await.is_none());
        assert!(permits.acquire(Operation::Execute).await.is_some());
        drop(first);
        assert!(permits.acquire(Operation::Screenshot).await.is_some());
        drop(second);
    }
}
