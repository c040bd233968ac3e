//! Requests to the RDMA core by netlink (`NETLINK_RDMA`, client NLDEV).
//! Source: the kernel's `include/uapi/rdma/rdma_netlink.h` and
//! `drivers/infiniband/core/nldev.c`; reading requires no privilege.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};
use nix::sys::socket::{recv, send, socket};

mod message;

pub(crate) use message::{Attributes, Value};
use message::{Message, Reply, request};

/// `RDMA_NLDEV_CMD_GET`: devices.
pub(crate) const DEVICE_GET: u16 = 1;
/// `RDMA_NLDEV_CMD_PORT_GET`: ports of one device.
pub(crate) const PORT_GET: u16 = 5;
/// `RDMA_NLDEV_CMD_GET_CHARDEV`: a character device of a device; since
/// Linux 5.3.
pub(crate) const CHARDEV_GET: u16 = 15;

/// The `RDMA_NLDEV_ATTR_*` in use.
pub(crate) mod attribute {
    pub(crate) const DEV_INDEX: u16 = 1;
    pub(crate) const DEV_NAME: u16 = 2;
    pub(crate) const PORT_INDEX: u16 = 3;
    pub(crate) const NODE_GUID: u16 = 6;
    pub(crate) const PORT_STATE: u16 = 12;
    pub(crate) const PORT_PHYS_STATE: u16 = 13;
    pub(crate) const NDEV_INDEX: u16 = 50;
    pub(crate) const NDEV_NAME: u16 = 51;
    pub(crate) const DEV_PROTOCOL: u16 = 67;
    pub(crate) const CHARDEV_TYPE: u16 = 69;
    pub(crate) const CHARDEV_NAME: u16 = 70;
    pub(crate) const CHARDEV_ABI: u16 = 71;
    pub(crate) const CHARDEV: u16 = 72;
    pub(crate) const UVERBS_DRIVER_ID: u16 = 73;
}

/// The kernel's dump messages fit in its own limit of 32 KiB each.
const BUFFER_BYTES: usize = 32 * 1024;
/// How often a dump is repeated because the list changed.
const DUMPS: usize = 8;

/// A socket to the RDMA core.
pub(crate) struct RdmaNetlink(OwnedFd);

impl RdmaNetlink {
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRDMA,
        )?;
        Ok(Self(socket))
    }

    /// Gets one object; `None` if it does not exist, for which the kernel's errors are
    /// `EINVAL` and `ENODEV`.
    pub(crate) fn get<T>(
        &self,
        operation: u16,
        key: &[(u16, Value<'_>)],
        read: impl FnOnce(Attributes<'_>) -> Option<T>,
    ) -> io::Result<Option<T>> {
        self.send(&request(operation, false, key))?;
        let mut buffer = [0; 4096];
        let bytes = self.receive(&mut buffer)?;
        match Reply::messages(bytes).next().transpose()? {
            Some(Message::Object(attributes)) => Ok(read(attributes)),
            Some(Message::Failed(libc::EINVAL | libc::ENODEV)) => Ok(None),
            Some(Message::Failed(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(Message::Done { .. } | Message::Interrupted) | None => {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
        }
    }

    /// Gets every object; repeats the dump if the list changed meanwhile.
    pub(crate) fn dump<T>(
        &self,
        operation: u16,
        key: &[(u16, Value<'_>)],
        read: impl Fn(Attributes<'_>) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        for _ in 0..DUMPS {
            if let Some(objects) = self.try_dump(operation, key, &read)? {
                return Ok(objects);
            }
        }
        Err(io::Error::from_raw_os_error(libc::EAGAIN))
    }

    /// `None` if the list changed meanwhile. Reads the dump to its end nevertheless, or
    /// the next answer would begin with the rest of this one.
    fn try_dump<T>(
        &self,
        operation: u16,
        key: &[(u16, Value<'_>)],
        read: &impl Fn(Attributes<'_>) -> Option<T>,
    ) -> io::Result<Option<Vec<T>>> {
        self.send(&request(operation, true, key))?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut objects = Some(Vec::new());
        loop {
            let bytes = self.receive(&mut buffer)?;
            for message in Reply::messages(bytes) {
                match message? {
                    Message::Object(attributes) => {
                        if let Some(objects) = &mut objects {
                            objects.extend(read(attributes));
                        }
                    }
                    Message::Interrupted => objects = None,
                    Message::Done { interrupted } => {
                        return Ok(objects.filter(|_| !interrupted));
                    }
                    Message::Failed(errno) => return Err(io::Error::from_raw_os_error(errno)),
                }
            }
        }
    }

    fn send(&self, request: &[u8]) -> io::Result<()> {
        send(self.0.as_raw_fd(), request, MsgFlags::empty())?;
        Ok(())
    }

    /// Receives one datagram. The kernel answers before `send` returns, so this does not
    /// block.
    fn receive<'buffer>(&self, buffer: &'buffer mut [u8]) -> io::Result<&'buffer [u8]> {
        let length = recv(self.0.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC)?;
        buffer
            .get(..length)
            .filter(|bytes| !bytes.is_empty())
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
