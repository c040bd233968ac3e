//! Waits for asynchronous operations of the kernel: checks a condition after each netlink
//! notification.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

/// How long the kernel may take; a slow emulated machine takes a fraction of this.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Uevents of the kernel.
const UEVENT_GROUP: u32 = 1;
/// Changes of IPv6 addresses.
const IPV6_ADDRESS_GROUP: u32 = 0x100;

/// A subscription to notifications of the kernel, opened before the change it waits for.
pub(crate) struct Watch(OwnedFd);

impl Watch {
    /// Notifications of added and removed devices.
    pub(crate) fn uevents() -> anyhow::Result<Self> {
        Self::subscribe(SockProtocol::NetlinkKObjectUEvent, UEVENT_GROUP).context("watch devices")
    }

    /// Notifications of changed IPv6 addresses.
    pub(crate) fn ipv6_addresses() -> anyhow::Result<Self> {
        Self::subscribe(SockProtocol::NetlinkRoute, IPV6_ADDRESS_GROUP).context("watch addresses")
    }

    fn subscribe(protocol: SockProtocol, groups: u32) -> anyhow::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        Ok(Self(socket))
    }

    /// Calls `find`, now and after each notification, until it returns a value.
    pub(crate) fn until<T>(
        &self,
        what: &str,
        mut find: impl FnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let end = Instant::now() + TIMEOUT;
        loop {
            if let Some(value) = find()? {
                return Ok(value);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("waited {} s for {what}", TIMEOUT.as_secs());
            }
            let timeout = PollTimeout::try_from(left)?;
            match poll(
                &mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)],
                timeout,
            ) {
                Ok(_) | Err(Errno::EINTR) => self.drain()?,
                Err(error) => return Err(error).context("poll"),
            }
        }
    }

    /// Discards the notifications; `find` checks the state.
    fn drain(&self) -> anyhow::Result<()> {
        let mut message = [0; 8192];
        loop {
            match recv(self.0.as_raw_fd(), &mut message, MsgFlags::empty()) {
                // An overflow loses notifications, but not the state.
                Ok(_) | Err(Errno::EINTR | Errno::ENOBUFS) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(error).context("read notifications"),
            }
        }
    }
}
