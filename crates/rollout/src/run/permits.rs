//! Places for operations on the farm: each kind has so many at once, further ones wait in order, not for ever.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::config::HttpPools;

/// The kinds of operation that have a pool of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
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
pub struct Pools {
    places: Arc<[Semaphore; 8]>,
    wait: Duration,
}

impl Pools {
    pub fn new(sizes: &HttpPools, wait: Duration) -> Self {
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
        Self { places: Arc::new(sizes.map(|size| Semaphore::new(size.max(1)))), wait }
    }

    /// A place, or `None` when none came free in time.
    pub async fn enter(&self, pool: Pool) -> Option<SemaphorePermit<'_>> {
        let places = &self.places[pool as usize];
        tokio::time::timeout(self.wait, places.acquire()).await.ok()?.ok()
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
    async fn a_full_pool_makes_others_wait_and_not_for_ever() {
        let pools = Pools::new(&sizes(), Duration::from_secs(5));
        let first = pools.enter(Pool::Screenshot).await.unwrap();
        let second = pools.enter(Pool::Screenshot).await.unwrap();
        assert!(pools.enter(Pool::Screenshot).await.is_none());
        assert!(pools.enter(Pool::Execute).await.is_some());
        drop(first);
        assert!(pools.enter(Pool::Screenshot).await.is_some());
        drop(second);
    }
}
