//! Ending waits when a context is closed.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::Result;
use crate::readable::wait_error;
use crate::removal::Removals;

/// Descriptors that end a context's waits.
#[derive(Debug)]
pub(crate) struct CloseSignal {
    /// Readable once the context is closed.
    closed: EventFd,
    /// The kernel's announcements of removed devices. `None` for a simulated device, and if the
    /// sandbox forbids them: removal then shows in other errors, or not at all. In a network
    /// namespace of a user namespace other than the initial one there are none
    /// (`uevent_net_init`).
    removals: Option<Removals>,
}

impl CloseSignal {
    /// `has_node`: whether the device is the kernel's. Nobody would read what it announces of
    /// others, and a socket with unread announcements ends every wait at once.
    ///
    /// # Errors
    /// Too few descriptors or too little memory, of which there may be more the next time.
    pub(crate) fn new(has_node: bool) -> Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let closed = EventFd::from_flags(flags).map_err(wait_error)?;
        let removals = match has_node.then(Removals::open) {
            Some(Ok(removals)) => Some(removals),
            Some(Err(errno @ (Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS))) => {
                return Err(wait_error(errno));
            }
            None | Some(Err(_)) => None,
        };
        Ok(Self { closed, removals })
    }

    pub(crate) fn closed(&self) -> BorrowedFd<'_> {
        self.closed.as_fd()
    }

    pub(crate) fn removals(&self) -> Option<&Removals> {
        self.removals.as_ref()
    }

    /// Ends all current and future waits.
    pub(crate) fn set(&self) {
        // The counter cannot overflow: this is called only a few times.
        let _ = self.closed.write(1);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::process::Command;

    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    use super::*;

    const IS_CHILD: &str = "RDMACM_TEST_IS_CHILD";

    /// In a process of its own, whose other threads need none.
    #[test]
    fn without_a_descriptor_for_removals_it_is_not_made() {
        if std::env::var_os(IS_CHILD).is_none() {
            let mut child = Command::new(std::env::current_exe().unwrap());
            let test = "close_signal::tests::without_a_descriptor_for_removals_it_is_not_made";
            let ended = child.args(["--exact", test]).env(IS_CHILD, "1").output();
            let ended = ended.unwrap();
            let output = String::from_utf8_lossy(&ended.stdout);
            assert!(
                ended.status.success() && output.contains("1 passed"),
                "{output}"
            );
            return;
        }
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let next = std::fs::File::open("/dev/null").unwrap();
        let first_free = u64::try_from(next.as_raw_fd()).unwrap();
        drop(next);
        setrlimit(Resource::RLIMIT_NOFILE, first_free + 1, hard).unwrap();
        let refused = CloseSignal::new(true);
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EMFILE));
        assert!(CloseSignal::new(true).unwrap().removals().is_some());
    }
}
