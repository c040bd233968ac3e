//! When to retry.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::error::Error;
use crate::stage::Stage;

/// Whether and when to retry after a [failure that may pass](crate::Error::is_retryable), such as
/// a peer that has not noticed the end of an earlier connection, is short of resources or does not
/// listen yet, or a name server that failed for now.
///
/// Each attempt looks up the peer's name again, and so follows a changed entry of the name
/// server. If that fails, or takes longer than a second, it tries the addresses that were found
/// before.
///
/// The backoff before the next attempt is `initial_backoff` at first and doubles up to
/// `max_backoff`. Each one is shortened at random, by up to a half, so that clients that were
/// rejected at the same time do not retry at the same time. The deadline of the whole call
/// holds all the same. [`RetryPolicy::never`] is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    attempts: u32,
    initial_backoff: Duration,
    max_backoff: Duration,
    attempt_timeout: Option<Duration>,
}

impl RetryPolicy {
    /// One attempt. On iWARP, an attempt from a port that the kernel has chosen and TCP uses is
    /// repeated from up to 15 others, which no policy counts.
    #[must_use]
    pub const fn never() -> Self {
        Self::attempts(1)
    }

    /// This many attempts in all, with a backoff from 20 ms to a second.
    #[must_use]
    pub const fn attempts(attempts: u32) -> Self {
        Self {
            attempts,
            initial_backoff: Duration::from_millis(20),
            max_backoff: Duration::from_secs(1),
            attempt_timeout: None,
        }
    }

    /// As many attempts as the deadline allows.
    #[must_use]
    pub const fn until_deadline() -> Self {
        Self::attempts(u32::MAX)
    }

    /// The backoff after the first attempt.
    #[must_use]
    pub const fn initial_backoff(mut self, backoff: Duration) -> Self {
        self.initial_backoff = backoff;
        self
    }

    /// The longest backoff.
    #[must_use]
    pub const fn max_backoff(mut self, backoff: Duration) -> Self {
        self.max_backoff = backoff;
        self
    }

    /// Ends the attempt at each address after this time, and tries again once all have failed.
    /// A RoCE or InfiniBand peer whose backlog is full drops requests without a reply, and the
    /// kernel repeats a request only after more than four seconds; a timeout of a second is
    /// faster. It does not limit name lookups: until addresses are known, a lookup may take until
    /// the deadline, afterwards one second.
    #[must_use]
    pub const fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = Some(limit);
        self
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        self.attempt_timeout
    }

    /// The backoff before the next attempt; `None` if there is no next attempt.
    pub(crate) fn backoff(&self, made: u32, error: &Error) -> Option<Duration> {
        // The timeout is not that of lookups, and a list does not change.
        let is_limited = self.attempt_timeout.is_some() && error.stage() != Stage::LookUp;
        let cut_short = is_limited && error.is_timeout();
        if made >= self.attempts || !(error.is_retryable() || cut_short) {
            return None;
        }
        let doubled = 1_u32
            .checked_shl(made.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let backoff = self
            .initial_backoff
            .saturating_mul(doubled)
            .min(self.max_backoff);
        Some(backoff.saturating_sub(random_part(backoff / 2)))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::never()
    }
}

/// A random duration up to `most`, from the standard library's hash keys.
fn random_part(most: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    let thousandths = u32::try_from(random % 1000).unwrap_or(0);
    most.saturating_mul(thousandths) / 1000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Cause;

    fn failed(cause: Cause) -> Error {
        Error::new(Stage::Connect, cause)
    }

    #[test]
    fn backoffs_double_and_stay_below_the_longest() {
        let policy = RetryPolicy::until_deadline();
        for (made, most) in [(1, 20), (2, 40), (3, 80), (7, 1000), (60, 1000)] {
            let most = Duration::from_millis(most);
            let backoff = policy.backoff(made, &failed(Cause::PeerGone)).unwrap();
            assert!(
                backoff <= most && backoff >= most / 2,
                "{made}: {backoff:?}"
            );
        }
    }

    #[test]
    fn a_permanent_failure_is_not_retried() {
        let policy = RetryPolicy::attempts(2);
        assert!(policy.backoff(1, &failed(Cause::PeerGone)).is_some());
        assert!(policy.backoff(2, &failed(Cause::PeerGone)).is_none());
        assert!(policy.backoff(1, &failed(Cause::NoAddress)).is_none());
        assert!(policy.backoff(1, &failed(Cause::Deadline)).is_none());
        let limited = policy.attempt_timeout(Duration::from_secs(1));
        assert!(limited.backoff(1, &failed(Cause::Deadline)).is_some());
        let looked_up = Error::new(Stage::LookUp, Cause::Deadline);
        assert!(limited.backoff(1, &looked_up).is_none());
    }

    proptest! {
        #[test]
        fn backoffs_are_within_their_bounds(
            attempts in 0..100_u32,
            made in 1..100_u32,
            first in 0..u64::MAX,
            longest in 0..u64::MAX,
        ) {
            let (first, longest) = (Duration::from_nanos(first), Duration::from_nanos(longest));
            let policy = RetryPolicy::attempts(attempts);
            let policy = policy.initial_backoff(first).max_backoff(longest);
            let backoff = policy.backoff(made, &failed(Cause::PeerGone));
            prop_assert_eq!(backoff.is_some(), made < attempts);
            if let Some(backoff) = backoff {
                let doubled = 2_u32.checked_pow(made - 1).unwrap_or(u32::MAX);
                let most = first.saturating_mul(doubled).min(longest);
                prop_assert!(backoff <= most && backoff >= most / 2, "{:?}", backoff);
            }
        }

        #[test]
        fn backoffs_grow_until_the_longest(first in 1..1000_u64, longest in 1..100_000_u64) {
            let (first, longest) = (Duration::from_micros(first), Duration::from_micros(longest));
            let policy = RetryPolicy::until_deadline().initial_backoff(first).max_backoff(longest);
            // What is left of a backoff is at least a half, so every second one is longer.
            let backoffs: Vec<_> = (1..60)
                .filter_map(|made| policy.backoff(made, &failed(Cause::PeerGone)))
                .collect();
            prop_assert_eq!(backoffs.len(), 59);
            for pair in backoffs.windows(3) {
                prop_assert!(pair[2] >= pair[0].min(longest / 2));
            }
            prop_assert!(backoffs[58] >= longest / 2);
        }
    }
}
