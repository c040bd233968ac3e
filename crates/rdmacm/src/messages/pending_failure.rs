//! Why nothing more can be transferred, as far as it is known.

use std::time::Instant;

use crate::data::Failure;

/// The failure of a connection. It may be a consequence of the peer's disconnecting, of which an
/// event is still to come: then callers receive it only if the event does not come in time.
#[derive(Debug, Default)]
pub(super) struct PendingFailure {
    failure: Option<Failure>,
    /// When a caller first learned of it.
    failed_at: Option<Instant>,
    /// Whether it is what callers receive, whatever comes later.
    is_final: bool,
}

impl PendingFailure {
    /// Records a failure; returns whether it counts. The first reason is kept; consequences are
    /// replaced by a reason.
    pub(super) fn record(&mut self, failure: Failure) -> bool {
        let known = self.failure.as_ref();
        if known.is_some_and(|known| known.is_reason() || !failure.is_reason()) {
            return false;
        }
        *self = Self {
            failure: Some(failure),
            ..Self::default()
        };
        true
    }

    #[inline]
    pub(super) fn get(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The failure, and whether it is final: it is not a consequence of the peer's
    /// disconnecting, or the event that says so has not come in time.
    pub(super) fn check(
        &mut self,
        now: impl FnOnce() -> Instant,
        is_closed: bool,
    ) -> Option<(Failure, bool)> {
        let failure = self.failure.clone()?;
        let wait = failure.disconnect_wait();
        let now = now();
        let since = *self.failed_at.get_or_insert(now);
        let has_waited = now.saturating_duration_since(since) >= wait;
        self.is_final |= wait.is_zero() || (has_waited && !is_closed);
        Some((failure, self.is_final))
    }

    /// When a caller first learned of it.
    pub(super) fn failed_at(&self) -> Option<Instant> {
        self.failed_at
    }

    /// How long to wait for the event that the peer has disconnected, if that is awaited.
    pub(super) fn disconnect_wait(&self, now: Instant) -> Option<Instant> {
        let wait = self.failure.as_ref()?.disconnect_wait();
        let until = self.failed_at?.checked_add(wait)?;
        (!self.is_final && until > now).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn context_closed() -> rdmacm_verbs::Error {
        let device = String::from("rxe0");
        rdmacm_verbs::Error::ContextClosed { device }
    }

    fn recorded(failure: Failure) -> PendingFailure {
        let mut pending = PendingFailure::default();
        assert!(pending.record(failure));
        pending
    }

    fn is_final(pending: &mut PendingFailure, now: Instant, is_closed: bool) -> bool {
        let failure = pending.check(|| now, is_closed);
        failure.is_some_and(|(_, is_final)| is_final)
    }

    #[test]
    fn a_failure_waits_for_a_disconnect_and_is_final_then() {
        let now = Instant::now();
        for (failure, wait) in [
            (Failure::Flushed, SECOND * 2),
            (Failure::Refused(context_closed()), SECOND),
        ] {
            let mut pending = recorded(failure);
            // The wait begins when a caller learns of the failure.
            assert_eq!(pending.disconnect_wait(now), None);
            assert!(!is_final(&mut pending, now, false));
            assert_eq!(pending.disconnect_wait(now), Some(now + wait));
            assert!(!is_final(&mut pending, now + wait / 2, false));
            assert!(is_final(&mut pending, now + wait, false));
            assert_eq!(pending.disconnect_wait(now), None);
            // All callers receive the same.
            assert!(is_final(&mut pending, now + wait, true));
        }
    }

    #[test]
    fn a_disconnect_in_time_outranks_a_failure() {
        let now = Instant::now();
        let mut pending = recorded(Failure::Refused(context_closed()));
        assert!(!is_final(&mut pending, now, false));
        assert!(!is_final(&mut pending, now + SECOND / 2, true));
        assert!(!is_final(&mut pending, now + SECOND * 2, true));
    }

    #[test]
    fn a_reason_replaces_a_consequence() {
        let now = Instant::now();
        let mut pending = recorded(Failure::Flushed);
        assert!(!is_final(&mut pending, now, false));
        assert!(pending.record(Failure::Device(context_closed())));
        assert!(is_final(&mut pending, now, true));
        assert_eq!(pending.disconnect_wait(now), None);
        assert!(!pending.record(Failure::Flushed));
        assert!(matches!(pending.get(), Some(Failure::Device(_))));
    }
}
