//! How long threads wait.

use std::io;
use std::time::Duration;

use rdmacm_core::Deadline;

/// How long threads wait that read or write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timeouts {
    pub(crate) read: Option<Duration>,
    pub(crate) write: Option<Duration>,
    /// Calls that would wait fail instead.
    pub(crate) is_nonblocking: bool,
}

impl Timeouts {
    /// `None` if a read does not wait.
    pub(crate) fn read_deadline(self) -> Option<Deadline> {
        self.deadline(self.read)
    }

    /// `None` if a write does not wait.
    pub(crate) fn write_deadline(self) -> Option<Deadline> {
        self.deadline(self.write)
    }

    fn deadline(self, timeout: Option<Duration>) -> Option<Deadline> {
        let deadline = Deadline::from(timeout);
        (!self.is_nonblocking).then_some(deadline)
    }
}

/// A timeout that a caller sets.
pub(crate) fn checked_timeout(timeout: Option<Duration>) -> io::Result<Option<Duration>> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        let reason = "a timeout of zero";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    Ok(timeout)
}
