//! A first come, first served queue for scarce slots. A waiter leaves the queue when its future is dropped.

use std::{
    future::Future,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use tokio::sync::{Mutex, Notify};

/// How often the waiter at the head tries without being woken: a slot on a remote node becomes free silently.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// Waiters ahead take what is free within moments. Until then even a caller that does not want to wait stays in the
/// queue, because it may still get a slot at once.
const MIN_TURN_WAIT: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(crate) struct Queue {
    /// Held by the waiter at the head.
    head: Mutex<()>,
    changed: Notify,
    waiting: AtomicUsize,
}

impl Queue {
    /// Wakes the waiter at the head: a slot may have become free.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for the head of the queue, then repeats `attempt` until it succeeds or the deadline passes. A caller that
    /// does not reach the head in time gets `too_late`, never a slot that an earlier waiter could have.
    ///
    /// The outer error of an attempt is final; the inner one means "not now".
    pub(crate) async fn acquire<T, E, F>(
        &self,
        deadline: Instant,
        mut attempt: impl FnMut() -> F,
        too_late: impl FnOnce() -> E,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<Result<T, E>, E>>,
    {
        let _waiter = Waiter::new(&self.waiting);
        let head_deadline = deadline.max(Instant::now() + MIN_TURN_WAIT);
        let Ok(_head) = tokio::time::timeout_at(head_deadline.into(), self.head.lock()).await else {
            return Err(too_late());
        };
        loop {
            let changed = self.changed.notified();
            let not_now = match attempt().await? {
                Ok(acquired) => return Ok(acquired),
                Err(not_now) => not_now,
            };
            if Instant::now() >= deadline {
                return Err(not_now);
            }
            let retry_at = deadline.min(Instant::now() + RETRY_INTERVAL);
            let _ = tokio::time::timeout_at(retry_at.into(), changed).await;
        }
    }
}

/// Counts a waiter as long as it exists.
struct Waiter<'a>(&'a AtomicUsize);

impl<'a> Waiter<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex as StdMutex};

    type Stock = Arc<StdMutex<Vec<u32>>>;

    async fn acquire(queue: &Queue, stock: &Stock, wait: Duration) -> Result<u32, &'static str> {
        let attempt = || async { Ok(stock.lock().unwrap().pop().ok_or("empty")) };
        queue.acquire(Instant::now() + wait, attempt, || "too late").await
    }

    #[tokio::test(start_paused = true)]
    async fn waiters_are_served_in_order() {
        let queue = Arc::new(Queue::default());
        let stock: Stock = Arc::default();
        let order: Arc<StdMutex<Vec<usize>>> = Arc::default();
        let mut callers = Vec::new();
        for caller in 0..4 {
            let (its_queue, its_stock, order) = (Arc::clone(&queue), Arc::clone(&stock), Arc::clone(&order));
            callers.push(tokio::spawn(async move {
                let acquired = acquire(&its_queue, &its_stock, Duration::from_mins(1)).await;
                order.lock().unwrap().push(caller);
                acquired
            }));
            tokio::task::yield_now().await;
            while queue.len() <= caller {
                tokio::task::yield_now().await;
            }
        }
        // The second caller disconnects.
        callers[1].abort();
        let _ = (&mut callers[1]).await;
        assert_eq!(queue.len(), 3);
        for _ in 0..3 {
            stock.lock().unwrap().push(1);
            let before = order.lock().unwrap().len();
            queue.wake();
            while order.lock().unwrap().len() == before {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(*order.lock().unwrap(), [0, 2, 3]);
        assert_eq!(queue.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn waiter_without_slot_fails_at_deadline() {
        let queue = Queue::default();
        assert_eq!(acquire(&queue, &Stock::default(), Duration::from_secs(2)).await, Err("empty"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn simultaneous_callers_without_wait_get_all_slots() {
        let queue = Arc::new(Queue::default());
        let stock: Stock = Arc::new(StdMutex::new((0..100).collect()));
        let callers: Vec<_> = (0..100)
            .map(|_| {
                let (queue, stock) = (Arc::clone(&queue), Arc::clone(&stock));
                tokio::spawn(async move { acquire(&queue, &stock, Duration::ZERO).await })
            })
            .collect();
        for caller in callers {
            assert!(caller.await.unwrap().is_ok());
        }
        assert!(stock.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn caller_without_wait_never_overtakes_a_waiter() {
        let queue = Arc::new(Queue::default());
        let stock: Stock = Arc::default();
        let (its_queue, its_stock) = (Arc::clone(&queue), Arc::clone(&stock));
        let waiter =
            tokio::spawn(async move { acquire(&its_queue, &its_stock, Duration::from_mins(1)).await });
        while queue.len() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(acquire(&queue, &stock, Duration::ZERO).await, Err("too late"));
        stock.lock().unwrap().push(7);
        assert_eq!(waiter.await.unwrap(), Ok(7));
    }
}
