//! Trying again: the error says whether that makes sense, the policy how often and how patiently, the deadline until when.

use std::{future::Future, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};

use super::Deadline;

/// What an error says about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same request would fail the same way.
    Permanent,
    Retry,
    /// The remote is alive and asks for patience: does not use up a retry.
    Later(Option<Duration>),
}

pub(crate) trait Transient {
    fn verdict(&self) -> Verdict;
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

    /// Growing delays with jitter, so that a crowd does not come back all at once.
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

/// Runs `attempt` until it succeeds, fails for good, or patience or time runs out. The last error is the answer, unless it
/// is only the deadline cutting an attempt short: then the one before tells more.
pub(crate) async fn retrying<T, E, F, Attempt>(
    policy: &RetryPolicy,
    deadline: Deadline,
    mut attempt: F,
) -> Result<T, E>
where
    E: Transient,
    F: FnMut() -> Attempt,
    Attempt: Future<Output = Result<T, E>>,
{
    let mut delays = policy.delays();
    let mut left = policy.max_retries;
    let mut before = None;
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) if deadline.has_passed() => return Err(before.unwrap_or(error)),
            Err(error) => error,
        };
        let mut delay = delays.next().unwrap_or(policy.max_delay);
        match error.verdict() {
            Verdict::Permanent => return Err(error),
            Verdict::Retry if left == 0 => return Err(error),
            Verdict::Retry => left -= 1,
            Verdict::Later(asked) => delay = asked.unwrap_or(Duration::ZERO).max(delay),
        }
        if delay >= deadline.remaining() {
            return Err(error);
        }
        before = Some(error);
        tokio::time::sleep(delay).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Fails(Verdict);

    impl Transient for Fails {
        fn verdict(&self) -> Verdict {
            self.0
        }
    }

    async fn attempts(verdict: Verdict, succeed_at: usize, span: u64) -> (usize, bool) {
        let policy = RetryPolicy { max_retries: 2, ..RetryPolicy::default() };
        let count = Cell::new(0);
        let result = retrying(&policy, Deadline::after(Duration::from_secs(span)), || {
            count.set(count.get() + 1);
            let ok = count.get() >= succeed_at;
            async move { if ok { Ok(()) } else { Err(Fails(verdict)) } }
        })
        .await;
        (count.get(), result.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_decides_whether_to_try_again() {
        assert_eq!(attempts(Verdict::Permanent, 9, 1000).await, (1, false));
        assert_eq!(attempts(Verdict::Retry, 9, 1000).await, (3, false));
        assert_eq!(attempts(Verdict::Retry, 2, 1000).await, (2, true));
        assert_eq!(attempts(Verdict::Later(None), 9, 1000).await, (9, true));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_tried_beyond_the_deadline() {
        let (count, ok) = attempts(Verdict::Later(Some(Duration::from_secs(4))), 9, 10).await;
        assert_eq!((count, ok), (3, false));
        assert_eq!(attempts(Verdict::Later(Some(Duration::from_secs(60))), 9, 10).await, (1, false));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_cut_short_by_the_deadline_does_not_hide_the_reason() {
        let count = Cell::new(0);
        let result: Result<(), Fails> =
            retrying(&RetryPolicy::default(), Deadline::after(Duration::from_secs(9)), || {
                count.set(count.get() + 1);
                let first = count.get() == 1;
                async move {
                    if first {
                        return Err(Fails(Verdict::Later(None)));
                    }
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    Err(Fails(Verdict::Retry))
                }
            })
            .await;
        assert_eq!(result, Err(Fails(Verdict::Later(None))));
    }
}
