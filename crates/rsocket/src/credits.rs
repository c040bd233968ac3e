//! Counts of messages.

/// How many messages one side may still send: an absolute limit and the messages so far, both
/// modulo 2^16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credits {
    used: u16,
    limit: u16,
    /// No more than this many can be left.
    most: u16,
    /// So many are never used.
    reserve: u16,
}

impl Credits {
    pub(crate) fn new(limit: u16) -> Self {
        Self::with_reserve(limit, 0)
    }

    pub(crate) fn with_reserve(limit: u16, reserve: u16) -> Self {
        Self {
            used: 0,
            limit,
            most: limit,
            reserve,
        }
    }

    pub(crate) fn left(self) -> u16 {
        let left = self.limit.wrapping_sub(self.used);
        left.saturating_sub(self.reserve)
    }

    /// Uses one credit; `false` if there is none.
    #[must_use]
    pub(crate) fn take(&mut self) -> bool {
        let has_one = self.left() > 0;
        if has_one {
            self.used = self.used.wrapping_add(1);
        }
        has_one
    }

    /// `false` if the limit leaves more credits than there were at first: no side has more
    /// receive requests than that.
    #[must_use]
    pub(crate) fn set_limit(&mut self, limit: u16) -> bool {
        let is_possible = limit.wrapping_sub(self.used) <= self.most;
        if is_possible {
            self.limit = limit;
        }
        is_possible
    }

    /// All credits that were used are given back, of this many. Returns the limit.
    pub(crate) fn refill(&mut self, credits: u16) -> u16 {
        self.limit = self.used.wrapping_add(credits);
        self.limit
    }
}
