//! When a test ends.

use std::time::{Duration, Instant};

use crate::args::Goal;

/// The number of messages or the time at which a test ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum TestEnd {
    Messages(u64),
    Time(Instant),
}

impl TestEnd {
    /// The end of a test with this goal that starts now.
    pub(super) fn of_goal(goal: Goal) -> Self {
        match goal {
            Goal::Messages(count) => Self::Messages(count),
            Goal::Time(duration) => Self::after(duration),
        }
    }

    /// The end of its warm-up, a tenth of it, at least one message.
    pub(super) fn of_warm_up(goal: Goal) -> Self {
        match goal {
            Goal::Messages(count) => Self::Messages(count.div_ceil(10)),
            Goal::Time(duration) => Self::after(duration / 10),
        }
    }

    fn after(duration: Duration) -> Self {
        let now = Instant::now();
        // The clock cannot represent the time, so it is never reached.
        now.checked_add(duration)
            .map_or(Self::Messages(u64::MAX), Self::Time)
    }

    /// Whether the test goes on after `so_far` messages.
    pub(super) fn is_ahead_of(self, so_far: u64) -> bool {
        match self {
            Self::Messages(count) => so_far < count,
            Self::Time(end) => so_far == 0 || Instant::now() < end,
        }
    }
}
