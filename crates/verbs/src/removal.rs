//! Detecting a device's removal.
//!
//! Removing a device of rxe or siw waits until all processes have closed it, without
//! notifying them. The kernel only announces the removal of the device's verbs node, as
//! a uevent.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, socket,
};
use parking_lot::Mutex;

/// The multicast group of the kernel's uevents; udev uses another.
const KERNEL_GROUP: u32 = 1;

/// Longer than a uevent (`UEVENT_BUFFER_SIZE`).
const MAX_MESSAGE: usize = 4096;

/// Where sysfs has the devices by their numbers.
const DEVICES: &str = "/sys/dev/char";

/// A verbs node. The kernel gives the device number of a removed one to the next device, even while
/// the removed one is open (`ib_uverbs_remove_one`), but not the inode of its directory in sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceNode {
    number: u64,
    /// `None` if sysfs did not have it.
    inode: Option<u64>,
}

impl DeviceNode {
    /// The node that has this device number now.
    pub(crate) fn with_number(number: u64) -> Self {
        Self::in_devices(Path::new(DEVICES), number)
    }

    fn in_devices(devices: &Path, number: u64) -> Self {
        let inode = inode(devices, number);
        Self { number, inode }
    }

    /// Its device number, as `st_rdev` of `stat(2)`.
    pub(crate) fn number(self) -> u64 {
        self.number
    }

    /// The name of the RDMA device, which may have changed; `None` if sysfs does not have it any more.
    pub(crate) fn device_name(self) -> Option<String> {
        let name = path(Path::new(DEVICES), self.number).join("ibdev");
        let name = fs::read_to_string(name).ok()?;
        self.exists().then(|| name.trim().to_owned())
    }

    /// Whether it is there still; `true` if sysfs is not mounted, or does not say.
    pub(crate) fn exists(self) -> bool {
        self.exists_in(Path::new(DEVICES))
    }

    fn exists_in(self, devices: &Path) -> bool {
        match (inode(devices, self.number), self.inode) {
            (Some(now), Some(inode)) => now == inode,
            (Some(_), None) => true,
            // A sandbox may have the link without its target.
            (None, _) => !devices.exists() || path(devices, self.number).is_symlink(),
        }
    }
}

/// The link to the directory of the device with this number.
fn path(devices: &Path, number: u64) -> PathBuf {
    let (major, minor) = (libc::major(number), libc::minor(number));
    devices.join(format!("{major}:{minor}"))
}

/// The inode of the directory of the device with this number.
fn inode(devices: &Path, number: u64) -> Option<u64> {
    let metadata = path(devices, number).metadata();
    metadata.ok().map(|metadata| metadata.ino())
}

/// The kernel's announcements of removed devices.
#[derive(Debug)]
pub(crate) struct Removals {
    socket: OwnedFd,
    /// Zeroed once, not at each read.
    buffer: Mutex<Box<[u8]>>,
}

impl Removals {
    pub(crate) fn open() -> nix::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkKObjectUEvent,
        )?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, KERNEL_GROUP))?;
        Ok(Self {
            socket,
            buffer: Mutex::new(vec![0; MAX_MESSAGE].into()),
        })
    }

    /// Reads all announcements. Returns whether one is the removal of this verbs node, or, if
    /// some were lost, whether the node is gone.
    pub(crate) fn has_removed(&self, node: DeviceNode) -> bool {
        // Whatever it contains is overwritten.
        let mut buffer = self.buffer.lock();
        let mut removed = false;
        loop {
            match receive(&self.socket, &mut buffer) {
                Ok(Some(message)) => removed |= is_removal(message, node.number),
                Ok(None) | Err(Errno::EINTR) => {}
                // Announcements were lost.
                Err(Errno::ENOBUFS) => removed |= !node.exists(),
                Err(_) => return removed,
            }
        }
    }
}

impl AsFd for Removals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Receives one message; `None` if it is not from the kernel.
fn receive<'a>(socket: &OwnedFd, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>, Errno> {
    let (length, from) = recvfrom::<NetlinkAddr>(socket.as_raw_fd(), buffer)?;
    let from_kernel = from.is_some_and(|from| from.pid() == 0);
    Ok(buffer.get(..length).filter(|_| from_kernel))
}

/// Whether a uevent is the removal of the verbs node with this number. A uevent is a summary,
/// then `NAME=value` pairs, each terminated by a zero.
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
    use std::os::unix::fs::symlink;

    use super::*;

    const MESSAGE: &[u8] = b"remove@/devices/virtual/infiniband_verbs/uverbs0\0ACTION=remove\0\
        DEVPATH=/devices/virtual/infiniband_verbs/uverbs0\0SUBSYSTEM=infiniband_verbs\0\
        MAJOR=231\0MINOR=192\0DEVNAME=infiniband/uverbs0\0SEQNUM=1700\0";

    #[test]
    fn only_the_removal_of_the_node_matches() {
        let node = libc::makedev(231, 192);
        assert!(is_removal(MESSAGE, node));
        assert!(!is_removal(MESSAGE, node + 1));
        for (pair, other) in [
            ("ACTION=remove", "ACTION=change"),
            ("SUBSYSTEM=infiniband_verbs", "SUBSYSTEM=infiniband"),
            ("MAJOR=231", "MAJOR=x"),
            ("MINOR=192", "MINOR"),
        ] {
            let text = std::str::from_utf8(MESSAGE).unwrap();
            assert!(!is_removal(text.replace(pair, other).as_bytes(), node));
        }
        assert!(!is_removal(b"", node));
        assert!(!is_removal(&[0xff; 64], node));
    }

    #[test]
    fn an_existing_node_is_found() {
        let null = DeviceNode::with_number(libc::makedev(1, 3));
        assert!(null.exists(), "/dev/null");
        assert!(!DeviceNode::with_number(libc::makedev(1, 4000)).exists());
    }

    #[test]
    fn a_node_is_gone_if_another_one_has_its_number() {
        let sysfs = tempfile::tempdir().unwrap();
        let devices = sysfs.path().join("char");
        let of_number = devices.join("231:192");
        let link_to = |name: &str| {
            let _ = fs::remove_file(&of_number);
            symlink(sysfs.path().join(name), &of_number).unwrap();
        };
        for directory in ["char", "uverbs0", "uverbs1"] {
            fs::create_dir(sysfs.path().join(directory)).unwrap();
        }
        let number = libc::makedev(231, 192);
        assert!(!DeviceNode::in_devices(&devices, number).exists_in(&devices));
        let unknown = DeviceNode::in_devices(&devices, number);
        link_to("uverbs0");
        let node = DeviceNode::in_devices(&devices, number);
        assert!(node.exists_in(&devices) && unknown.exists_in(&devices));
        link_to("uverbs1");
        assert!(!node.exists_in(&devices));
        link_to("uverbs0");
        assert!(node.exists_in(&devices));
        fs::remove_dir(sysfs.path().join("uverbs0")).unwrap();
        assert!(node.exists_in(&devices), "the link has no target");
        fs::remove_file(&of_number).unwrap();
        assert!(!node.exists_in(&devices));
        fs::remove_dir(&devices).unwrap();
        assert!(node.exists_in(&devices), "without sysfs it is not known");
    }

    #[test]
    fn no_removal_is_reported_without_one() {
        let removals = Removals::open().unwrap();
        // Other devices may be removed meanwhile, but no node has this number.
        assert!(!removals.has_removed(DeviceNode::with_number(u64::MAX)));
    }
}
