//! Empty writes that detect a dead peer.

use std::time::{Duration, Instant};

use rdmacm_verbs::WorkId;

/// The delay of the first write after an iWARP connection is established. Each further one
/// comes after four times as long.
const FIRST_WAKE_UP: Duration = Duration::from_millis(50);
const LAST_WAKE_UP: Duration = Duration::from_millis(800);

/// The shortest interval: a task that waits has let others run by then.
pub(crate) const MIN_KEEP_ALIVE: Duration = Duration::from_millis(1);

/// When the next empty write is due: by the caller's interval, and on iWARP soon after the
/// connection is established.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    interval: Option<Duration>,
    last: Instant,
    /// The last write, which may be in flight.
    pub(crate) work: Option<WorkId>,
    /// The delay until the next write that wakes up a peer on siw.
    wake_up: Option<Duration>,
}

impl KeepAlive {
    pub(crate) fn new(interval: Option<Duration>, now: Instant) -> Self {
        Self {
            interval,
            last: now,
            work: None,
            wake_up: None,
        }
    }

    /// Begins with the writes that wake up a peer on siw, which may not read what arrives
    /// while it accepts until more arrives: it answers the peer before it watches the
    /// connection (`siw_accept`).
    pub(crate) fn wake_up_peer(&mut self, now: Instant) {
        self.wake_up = Some(FIRST_WAKE_UP);
        self.last = now;
    }

    /// A write that no one waits for has completed.
    pub(crate) fn completed(&mut self, work: WorkId) {
        if self.work == Some(work) {
            self.work = None;
        }
    }

    /// A request is posted after a message has arrived. The peer has sent that after it had
    /// accepted: it reads what arrives from now on.
    pub(crate) fn peer_is_awake(&mut self) {
        self.wake_up = None;
    }

    /// When the next write is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        let interval = self.wake_up.or(self.interval)?;
        self.last.checked_add(interval)
    }

    /// A write is due now.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.last = now;
        let wake_up = self.wake_up.take().and_then(|delay| delay.checked_mul(4));
        self.wake_up = wake_up.filter(|delay| *delay <= LAST_WAKE_UP);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn writes_are_due_by_the_interval() {
        let now = Instant::now();
        let interval = Duration::from_secs(3);
        let mut keep_alive = KeepAlive::new(Some(interval), now);
        assert_eq!(keep_alive.next(), Some(now + interval));
        keep_alive.advance(now + interval);
        assert_eq!(keep_alive.next(), Some(now + interval * 2));
        assert_eq!(KeepAlive::new(None, now).next(), None);
    }

    #[test]
    fn three_writes_wake_up_a_peer() {
        let now = Instant::now();
        let mut keep_alive = KeepAlive::new(None, now);
        keep_alive.wake_up_peer(now);
        for delay in [50, 200, 800] {
            let due = keep_alive.next();
            assert_eq!(due, Some(now + Duration::from_millis(delay)));
            keep_alive.advance(now);
        }
        assert_eq!(keep_alive.next(), None);
    }

    proptest! {
        #[test]
        fn a_write_is_due_one_interval_after_the_last(
            interval in proptest::option::of(1..10_000_u64),
            wakes_up in any::<bool>(),
            late in proptest::collection::vec(0..5000_u64, 1..20),
        ) {
            let mut now = Instant::now();
            let interval = interval.map(Duration::from_millis);
            let mut keep_alive = KeepAlive::new(interval, now);
            if wakes_up {
                keep_alive.wake_up_peer(now);
            }
            let mut wake_ups = [50, 200, 800].map(Duration::from_millis).into_iter();
            for late in late {
                let wake_up = wake_ups.next().filter(|_| wakes_up);
                let expected = wake_up.or(interval).map(|after| now + after);
                prop_assert_eq!(keep_alive.next(), expected);
                // A write that is sent late does not bring the next one forward.
                now = expected.unwrap_or(now) + Duration::from_millis(late);
                keep_alive.advance(now);
            }
        }
    }
}
