//! Retries: the error decides whether to retry, the policy how often and after which delay, the deadline until when.

use std::{future::Future, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};

use super::Deadline;

/// Whether an error allows a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    /// The same request would fail the same way.
    Permanent,
    Retry,
    /// The server works and asks the client to wait. This does not count as a retry.
    RetryAfter(Option<Duration>),
}

pub(crate) trait Retryable {
    fn retry_advice(&self) -> RetryAdvice;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    pub max_retries: u32,
    pub first_delay: Duration,
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 2, first_delay: Duration::from_millis(250), max_delay: Duration::from_secs(15) }
    }
}

impl RetryPolicy {
    pub const fn none() -> Self {
        Self { max_retries: 0, first_delay: Duration::ZERO, max_delay: Duration::ZERO }
    }

    /// Returns exponential delays with jitter, so that many clients do not return at the same moment.
    fn delays(&self) -> impl Iterator<Item = Duration> {
        ExponentialBuilder::default()
            .with_min_delay(self.first_delay)
            .with_max_delay(self.max_delay)
            .with_factor(2.0)
            .with_jitter()
            .without_max_times()
            .build()
    }
}

/// Runs `attempt` until it succeeds, fails permanently, or retries or time run out. Returns the last error, or the one before
/// it when the deadline cut the last attempt short, because that one is more informative.
pub(crate) async fn retry<T, E, F, Attempt>(
    policy: &RetryPolicy,
    deadline: Deadline,
    mut attempt: F,
) -> Result<T, E>
where
    E: Retryable,
    F: FnMut() -> Attempt,
    Attempt: Future<Output = Result<T, E>>,
{
    let mut delays = policy.delays();
    let mut retries_left = policy.max_retries;
    let mut previous = None;
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) if deadline.has_passed() => return Err(previous.unwrap_or(error)),
            Err(error) => error,
        };
        let mut delay = delays.next().unwrap_or(policy.max_delay);
        match error.retry_advice() {
            RetryAdvice::Permanent => return Err(error),
            RetryAdvice::Retry if retries_left == 0 => return Err(error),
            RetryAdvice::Retry => retries_left -= 1,
            RetryAdvice::RetryAfter(requested) => delay = requested.unwrap_or(Duration::ZERO).max(delay),
        }
        if delay >= deadline.remaining() {
            return Err(error);
        }
        previous = Some(error);
        tokio::time::sleep(delay).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct TestError(RetryAdvice);

    impl Retryable for TestError {
        fn retry_advice(&self) -> RetryAdvice {
            self.0
        }
    }

    async fn attempts(verdict: RetryAdvice, succeed_at: usize, span: u64) -> (usize, bool) {
        let policy = RetryPolicy { max_retries: 2, ..RetryPolicy::default() };
        let count = Cell::new(0);
        let result = retry(&policy, Deadline::after(Duration::from_secs(span)), || {
            count.set(count.get() + 1);
            let ok = count.get() >= succeed_at;
            async move { if ok { Ok(()) } else { Err(TestError(verdict)) } }
        })
        .await;
        (count.get(), result.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn error_kind_decides_about_retry() {
        assert_eq!(attempts(RetryAdvice::Permanent, 9, 1000).await, (1, false));
        assert_eq!(attempts(RetryAdvice::Retry, 9, 1000).await, (3, false));
        assert_eq!(attempts(RetryAdvice::Retry, 2, 1000).await, (2, true));
        assert_eq!(attempts(RetryAdvice::RetryAfter(None), 9, 1000).await, (9, true));
    }

    #[tokio::test(start_paused = true)]
    async fn no_attempt_starts_after_the_deadline() {
        let (count, ok) = attempts(RetryAdvice::RetryAfter(Some(Duration::from_secs(4))), 9, 10).await;
        assert_eq!((count, ok), (3, false));
        assert_eq!(attempts(RetryAdvice::RetryAfter(Some(Duration::from_secs(60))), 9, 10).await, (1, false));
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_does_not_hide_earlier_error() {
        let count = Cell::new(0);
        let result: Result<(), TestError> =
            retry(&RetryPolicy::default(), Deadline::after(Duration::from_secs(9)), || {
                count.set(count.get() + 1);
                let first = count.get() == 1;
                async move {
                    if first {
                        return Err(TestError(RetryAdvice::RetryAfter(None)));
                    }
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    Err(TestError(RetryAdvice::Retry))
                }
            })
            .await;
        assert_eq!(result, Err(TestError(RetryAdvice::RetryAfter(None))));
    }
}
