//! How long a caller is willing to wait.

use std::time::{Duration, Instant};

/// How long a call may wait. A [`Duration`], an [`Instant`] or an
/// `Option<Duration>` converts into it, so calls read `next_event(SECOND)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Wait for as long as it takes.
    Never,
    /// Wait until this moment; one in the past means: look, do not wait.
    At(Instant),
    /// Wait this long, counted from the call.
    After(Duration),
}

impl Deadline {
    /// The moment this deadline names, counted from `now`; `None` for never,
    /// and for a duration so long that the clock cannot name its end.
    #[must_use]
    pub fn until(self, now: Instant) -> Option<Instant> {
        match self {
            Self::Never => None,
            Self::At(message) => Some(message),
            Self::After(duration) => now.checked_add(duration),
        }
    }
}

impl From<Duration> for Deadline {
    fn from(duration: Duration) -> Self {
        Self::After(duration)
    }
}

impl From<Instant> for Deadline {
    fn from(message: Instant) -> Self {
        Self::At(message)
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
