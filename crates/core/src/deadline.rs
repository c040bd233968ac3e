//! Deadlines.

use std::time::{Duration, Instant};

/// The time until which a call may wait. A [`Duration`], an [`Instant`] or an
/// `Option<Duration>` converts into it, so a call can be `next_event(Duration::from_secs(1))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Wait without a limit.
    Never,
    /// Wait until this time; do not wait if it has passed.
    At(Instant),
    /// Wait this long, counted from the call.
    After(Duration),
}

impl Deadline {
    /// The time of this deadline, with durations counted from `now`; `None` for
    /// [`Never`](Self::Never), and for a duration beyond the range of the clock.
    #[must_use]
    pub fn until(self, now: Instant) -> Option<Instant> {
        self.until_by(|| now)
    }

    /// As [`until`](Self::until), with a clock that is read only for a duration.
    pub(crate) fn until_by(self, now: impl FnOnce() -> Instant) -> Option<Instant> {
        match self {
            Self::Never => None,
            Self::At(time) => Some(time),
            Self::After(duration) => now().checked_add(duration),
        }
    }
}

impl From<Duration> for Deadline {
    fn from(duration: Duration) -> Self {
        Self::After(duration)
    }
}

impl From<Instant> for Deadline {
    fn from(time: Instant) -> Self {
        Self::At(time)
    }
}

impl From<Option<Duration>> for Deadline {
    fn from(duration: Option<Duration>) -> Self {
        duration.map_or(Self::Never, Self::After)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_from_the_call() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!(Deadline::from(second).until(now), Some(now + second));
        assert_eq!(Deadline::from(now).until(now + second), Some(now));
        assert_eq!(Deadline::from(None::<Duration>).until(now), None);
        assert_eq!(Deadline::After(Duration::MAX).until(now), None);
    }
}
