//! When enough has been measured.

use std::time::{Duration, Instant};

use crate::args::Goal;

/// A goal that is being worked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    Messages(u64),
    Time(Instant),
}

impl Until {
    /// For `goal`, from now on.
    pub(super) fn reached(goal: Goal) -> Self {
        match goal {
            Goal::Messages(count) => Self::Messages(count),
            Goal::Time(duration) => Self::after(duration),
        }
    }

    /// A tenth of `goal`, from now on; one message at least.
    pub(super) fn warm(goal: Goal) -> Self {
        match goal {
            Goal::Messages(count) => Self::Messages(count.div_ceil(10)),
            Goal::Time(duration) => Self::after(duration / 10),
        }
    }

    fn after(duration: Duration) -> Self {
        let now = Instant::now();
        // A time that the clock cannot name does not come.
        now.checked_add(duration)
            .map_or(Self::Messages(u64::MAX), Self::Time)
    }

    /// Whether there is to be one more after so many.
    pub(super) fn goes_on(self, so_far: u64) -> bool {
        match self {
            Self::Messages(count) => so_far < count,
            Self::Time(end) => so_far == 0 || Instant::now() < end,
        }
    }
}
