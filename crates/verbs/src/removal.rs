//! Hearing of a device's removal.
//!
//! The kernel waits with removing a device of rxe or siw for all who have it open,
//! and tells them nothing meanwhile. What it does tell is everybody: that the
//! device's verbs node has gone.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, socket,
};

/// The group in which the kernel speaks itself; udev's is another.
const KERNEL_GROUP: u32 = 1;

/// More than the kernel puts into one message (`UEVENT_BUFFER_SIZE`).
const LONGEST: usize = 4096;

/// Where the kernel announces what comes and goes.
#[derive(Debug)]
pub(crate) struct Removals {
    socket: OwnedFd,
}

impl Removals {
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkKObjectUEvent,
        )?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, KERNEL_GROUP))?;
        Ok(Self { socket })
    }

    /// Reads all announcements there are. Whether one of them is that this verbs
    /// node has gone; where some were lost, whether it has.
    pub(crate) fn tell_of(&self, node: u64) -> bool {
        let mut buffer = [0; LONGEST];
        let mut told = false;
        loop {
            match receive(&self.socket, &mut buffer) {
                Ok(Some(message)) => told |= is_removal(message, node),
                Ok(None) | Err(Errno::EINTR) => {}
                // Some were lost.
                Err(Errno::ENOBUFS) => told |= !exists(node),
                Err(_) => return told,
            }
        }
    }
}

impl AsFd for Removals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether there is a device of this number. Where sysfs is not mounted there is
/// no telling, and there may be.
pub(crate) fn exists(node: u64) -> bool {
    let devices = Path::new("/sys/dev/char");
    let (major, minor) = (libc::major(node), libc::minor(node));
    !devices.exists() || devices.join(format!("{major}:{minor}")).exists()
}

/// One message; `None` if it is not the kernel's.
fn receive<'a>(socket: &OwnedFd, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>, Errno> {
    let (length, from) = recvfrom::<NetlinkAddr>(socket.as_raw_fd(), buffer)?;
    let from_kernel = from.is_some_and(|from| from.pid() == 0);
    Ok(buffer.get(..length).filter(|_| from_kernel))
}

/// Whether an announcement is of the removal of the verbs node of this number.
/// It is a headline, then `NAME=value` each ended by a zero.
fn is_removal(message: &[u8], node: u64) -> bool {
    let value = |name: &str| {
        message
            .split(|byte| *byte == 0)
            .filter_map(|line| std::str::from_utf8(line).ok())
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    let number = |name| value(name).and_then(|digits| digits.parse().ok());
    let (Some(major), Some(minor)) = (number("MAJOR"), number("MINOR")) else {
        return false;
    };
    value("ACTION") == Some("remove")
        && value("SUBSYSTEM") == Some("infiniband_verbs")
        && libc::makedev(major, minor) == node
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"remove@/devices/virtual/infiniband_verbs/uverbs0\0ACTION=remove\0\
        DEVPATH=/devices/virtual/infiniband_verbs/uverbs0\0SUBSYSTEM=infiniband_verbs\0\
        MAJOR=231\0MINOR=192\0DEVNAME=infiniband/uverbs0\0SEQNUM=1700\0";

    #[test]
    fn the_removal_of_a_node_is_told_from_all_else() {
        let node = libc::makedev(231, 192);
        assert!(is_removal(MESSAGE, node));
        assert!(!is_removal(MESSAGE, node + 1));
        for (word, other) in [
            ("ACTION=remove", "ACTION=change"),
            ("SUBSYSTEM=infiniband_verbs", "SUBSYSTEM=infiniband"),
            ("MAJOR=231", "MAJOR=x"),
            ("MINOR=192", "MINOR"),
        ] {
            let text = std::str::from_utf8(MESSAGE).unwrap();
            assert!(!is_removal(text.replace(word, other).as_bytes(), node));
        }
        assert!(!is_removal(b"", node));
        assert!(!is_removal(&[0xff; 64], node));
    }

    #[test]
    fn a_node_that_is_there_is_found() {
        assert!(exists(libc::makedev(1, 3)), "/dev/null");
        assert!(!exists(libc::makedev(1, 4000)));
    }

    #[test]
    fn nothing_is_told_when_nothing_happens() {
        let removals = Removals::open().unwrap();
        // Others may come and go on this machine; this node is none.
        assert!(!removals.tell_of(u64::MAX));
    }
}
