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
    pub(crate) fn read_deadline(self) -> io::Result<Deadline> {
        self.deadline(self.read)
    }

    pub(crate) fn write_deadline(self) -> io::Result<Deadline> {
        self.deadline(self.write)
    }

    fn deadline(self, timeout: Option<Duration>) -> io::Result<Deadline> {
        if self.is_nonblocking {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(timeout.map_or(Deadline::Never, Deadline::After))
    }
}
