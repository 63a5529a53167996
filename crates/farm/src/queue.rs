//! First come, first served: callers who wait for something scarce take turns, and one that hangs up leaves the
//! queue by being dropped.

use std::{
    future::Future,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use tokio::sync::{Mutex, Notify};

/// How often the first in line looks by itself, for capacity nobody announces (a node elsewhere).
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Those before us take what is there within moments; until then "it is not your turn" is no reason to give up,
/// not even for a caller who does not want to wait.
const GRACE: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(crate) struct Queue {
    turn: Mutex<()>,
    news: Notify,
    waiting: AtomicUsize,
}

impl Queue {
    /// Something may have become free.
    pub(crate) fn announce(&self) {
        self.news.notify_one();
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Tries, when it is our turn, until `attempt` yields something or the deadline has passed. Whoever does not
    /// get a turn by then gets `too_late`, never a slot that somebody before them waits for.
    pub(crate) async fn take<T, E, F>(
        &self,
        deadline: Instant,
        mut attempt: impl FnMut() -> F,
        too_late: impl FnOnce() -> E,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<Result<T, E>, E>>,
    {
        let _here = Waiting::new(&self.waiting);
        let turn_by = deadline.max(Instant::now() + GRACE);
        let Ok(_turn) = tokio::time::timeout_at(turn_by.into(), self.turn.lock()).await else {
            return Err(too_late());
        };
        loop {
            let news = self.news.notified();
            // An attempt that fails for good is the outer error; "not now" is the inner one.
            let not_now = match attempt().await? {
                Ok(taken) => return Ok(taken),
                Err(not_now) => not_now,
            };
            if Instant::now() >= deadline {
                return Err(not_now);
            }
            let until = deadline.min(Instant::now() + LOOK_AGAIN);
            let _ = tokio::time::timeout_at(until.into(), news).await;
        }
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex as StdMutex};

    type Stock = Arc<StdMutex<Vec<u32>>>;

    async fn take(queue: &Queue, stock: &Stock, limit: Duration) -> Result<u32, &'static str> {
        let attempt = || async { Ok(stock.lock().unwrap().pop().ok_or("empty")) };
        queue.take(Instant::now() + limit, attempt, || "too late").await
    }

    #[tokio::test(start_paused = true)]
    async fn first_come_is_first_served_and_the_impatient_leave() {
        let queue = Arc::new(Queue::default());
        let stock: Stock = Arc::default();
        let order: Arc<StdMutex<Vec<usize>>> = Arc::default();
        let mut callers = Vec::new();
        for caller in 0..4 {
            let (queue_of, stock_of, order_of) = (Arc::clone(&queue), Arc::clone(&stock), Arc::clone(&order));
            callers.push(tokio::spawn(async move {
                let got = take(&queue_of, &stock_of, Duration::from_secs(60)).await;
                order_of.lock().unwrap().push(caller);
                got
            }));
            tokio::task::yield_now().await;
            while queue.len() <= caller {
                tokio::task::yield_now().await;
            }
        }
        callers[1].abort();
        let _ = (&mut callers[1]).await;
        assert_eq!(queue.len(), 3);
        for _ in 0..3 {
            stock.lock().unwrap().push(1);
            let before = order.lock().unwrap().len();
            queue.announce();
            while order.lock().unwrap().len() == before {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(*order.lock().unwrap(), [0, 2, 3]);
        assert_eq!(queue.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_by_the_deadline_is_said_so() {
        let queue = Queue::default();
        assert_eq!(take(&queue, &Stock::default(), Duration::from_secs(2)).await, Err("empty"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_crowd_that_does_not_want_to_wait_still_gets_all_there_is() {
        let queue = Arc::new(Queue::default());
        let stock: Stock = Arc::new(StdMutex::new((0..100).collect()));
        let callers: Vec<_> = (0..100)
            .map(|_| {
                let (queue, stock) = (Arc::clone(&queue), Arc::clone(&stock));
                tokio::spawn(async move { take(&queue, &stock, Duration::ZERO).await })
            })
            .collect();
        for caller in callers {
            assert!(caller.await.unwrap().is_ok());
        }
        assert!(stock.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_wait_never_passes_who_does() {
        let queue = Arc::new(Queue::default());
        let stock: Stock = Arc::default();
        let (queue_of, stock_of) = (Arc::clone(&queue), Arc::clone(&stock));
        let patient = tokio::spawn(async move { take(&queue_of, &stock_of, Duration::from_secs(60)).await });
        while queue.len() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(take(&queue, &stock, Duration::ZERO).await, Err("too late"));
        stock.lock().unwrap().push(7);
        assert_eq!(patient.await.unwrap(), Ok(7));
    }
}
