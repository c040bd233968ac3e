//! Trying again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::error::Error;

/// Whether and when to try again after a failure that may pass: a peer that has
/// not noticed the end of an earlier connection, that is short of resources,
/// that does not listen yet or did not answer in time.
///
/// Attempts are `first_pause` apart, then twice as long each time up to
/// `longest_pause`, each pause shortened by a random part of up to half, so that
/// many who were refused at once do not come back at once. The deadline of the
/// whole holds all the same. [`RetryPolicy::never`] is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    attempts: u32,
    first_pause: Duration,
    longest_pause: Duration,
    attempt_limit: Option<Duration>,
}

impl RetryPolicy {
    /// One attempt.
    #[must_use]
    pub const fn never() -> Self {
        Self::attempts(1)
    }

    /// So many attempts in all, 20 ms apart at first and at most a second.
    #[must_use]
    pub const fn attempts(attempts: u32) -> Self {
        Self {
            attempts,
            first_pause: Duration::from_millis(20),
            longest_pause: Duration::from_secs(1),
            attempt_limit: None,
        }
    }

    /// As many attempts as the deadline allows.
    #[must_use]
    pub const fn until_deadline() -> Self {
        Self::attempts(u32::MAX)
    }

    /// The first pause.
    #[must_use]
    pub const fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// The longest pause.
    #[must_use]
    pub const fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause;
        self
    }

    /// Gives one attempt up after this long and tries again; of several addresses,
    /// the whole race. A RoCE or InfiniBand
    /// peer whose backlog is full drops requests silently, and the kernel repeats
    /// one only after more than four seconds: a limit of a second does better.
    #[must_use]
    pub const fn attempt_limit(mut self, limit: Duration) -> Self {
        self.attempt_limit = Some(limit);
        self
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        self.attempt_limit
    }

    /// How long to wait before the next attempt; `None` for no more.
    pub(crate) fn pause(&self, made: u32, error: &Error) -> Option<Duration> {
        let cut_short = self.attempt_limit.is_some() && error.is_timeout();
        if made >= self.attempts || !(error.is_retryable() || cut_short) {
            return None;
        }
        let doubled = 1_u32
            .checked_shl(made.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let pause = self
            .first_pause
            .saturating_mul(doubled)
            .min(self.longest_pause);
        Some(pause.saturating_sub(random_part(pause / 2)))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::never()
    }
}

/// Up to `most`, by the standard library's random keys.
fn random_part(most: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    let thousandths = u32::try_from(random % 1000).unwrap_or(0);
    most.saturating_mul(thousandths) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Cause, Target};
    use crate::step::Step;

    fn failed(cause: Cause) -> Error {
        Error::new(Step::Connect, Target::default(), Duration::ZERO, cause)
    }

    #[test]
    fn pauses_double_and_stay_below_the_longest() {
        let policy = RetryPolicy::until_deadline();
        for (made, most) in [(1, 20), (2, 40), (3, 80), (7, 1000), (60, 1000)] {
            let most = Duration::from_millis(most);
            let pause = policy.pause(made, &failed(Cause::Gone)).unwrap();
            assert!(pause <= most && pause >= most / 2, "{made}: {pause:?}");
        }
    }

    #[test]
    fn what_cannot_pass_is_not_tried_again() {
        let policy = RetryPolicy::attempts(2);
        assert!(policy.pause(1, &failed(Cause::Gone)).is_some());
        assert!(policy.pause(2, &failed(Cause::Gone)).is_none());
        assert!(policy.pause(1, &failed(Cause::NoAddress)).is_none());
        assert!(policy.pause(1, &failed(Cause::Deadline)).is_none());
        let impatient = policy.attempt_limit(Duration::from_secs(1));
        assert!(impatient.pause(1, &failed(Cause::Deadline)).is_some());
    }
}
