//! Requests to the RDMA core by netlink (`NETLINK_RDMA`, client NLDEV).
//! Source: the kernel's `include/uapi/rdma/rdma_netlink.h` and
//! `drivers/infiniband/core/nldev.c`; reading requires no privilege.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};
use nix::sys::socket::{recv, send, socket};

mod message;

pub(crate) use message::{Attributes, Value};
use message::{Message, Reply, Request};

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

/// Most objects fit; a larger one is requested again, with a buffer for any.
const OBJECT_BYTES: usize = 256;
/// The kernel's dump messages fit in its own limit of 32 KiB each.
const BUFFER_BYTES: usize = 32 * 1024;
/// How many dumps are compared at most.
const DUMPS: usize = 8;

/// A socket to the RDMA core.
#[derive(Debug)]
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
        let request = request(operation, false, key)?;
        self.send(&request)?;
        let mut buffer = [0; OBJECT_BYTES];
        if let Some(bytes) = self.receive(&mut buffer)? {
            return object(bytes, read);
        }
        self.send(&request)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        object(self.receive_whole(&mut buffer)?, read)
    }

    /// Gets every object.
    pub(crate) fn dump<T>(
        &self,
        operation: u16,
        key: &[(u16, Value<'_>)],
        read: impl Fn(Attributes<'_>) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        self.send(&request(operation, true, key)?)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut objects = Vec::new();
        loop {
            let bytes = self.receive_whole(&mut buffer)?;
            for message in Reply::messages(bytes) {
                match message? {
                    Message::Object(attributes) => objects.extend(read(attributes)),
                    Message::Done => return Ok(objects),
                    Message::Failed(errno) => return Err(io::Error::from_raw_os_error(errno)),
                }
            }
        }
    }

    /// Gets every device. The kernel sends one in each datagram, and begins the next at a position in
    /// its list: if a device before that was removed meanwhile, it skips one, and does not say so. So
    /// devices are listed until two lists in a row are the same.
    pub(crate) fn devices<T: PartialEq>(
        &self,
        read: impl Fn(Attributes<'_>) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        let mut previous = None;
        for _ in 0..DUMPS {
            let devices = self.dump(DEVICE_GET, &[], &read)?;
            if devices.is_empty() || previous.as_ref() == Some(&devices) {
                return Ok(devices);
            }
            previous = Some(devices);
        }
        Err(io::Error::from_raw_os_error(libc::EAGAIN))
    }

    fn send(&self, request: &Request) -> io::Result<()> {
        send(self.0.as_raw_fd(), request.bytes(), MsgFlags::empty())?;
        Ok(())
    }

    /// Receives one datagram; `None` if the buffer is too small for it. The kernel answers
    /// before `send` returns, so this does not block.
    fn receive<'buffer>(&self, buffer: &'buffer mut [u8]) -> io::Result<Option<&'buffer [u8]>> {
        let length = recv(self.0.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC)?;
        if length == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(buffer.get(..length))
    }

    fn receive_whole<'buffer>(&self, buffer: &'buffer mut [u8]) -> io::Result<&'buffer [u8]> {
        self.receive(buffer)?
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn request(operation: u16, dump: bool, key: &[(u16, Value<'_>)]) -> io::Result<Request> {
    Request::new(operation, dump, key).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// The object of an answer; `None` if it does not exist.
fn object<T>(
    bytes: &[u8],
    read: impl FnOnce(Attributes<'_>) -> Option<T>,
) -> io::Result<Option<T>> {
    match Reply::messages(bytes).next().transpose()? {
        Some(Message::Object(attributes)) => Ok(read(attributes)),
        Some(Message::Failed(libc::EINVAL | libc::ENODEV)) => Ok(None),
        Some(Message::Failed(errno)) => Err(io::Error::from_raw_os_error(errno)),
        Some(Message::Done) | None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::socketpair;

    /// An object with one name of this many bytes.
    fn named(length: u16) -> Vec<u8> {
        let mut bytes = (20 + u32::from(length)).to_ne_bytes().to_vec();
        bytes.resize(16, 0);
        bytes.extend((4 + length).to_ne_bytes());
        bytes.extend(attribute::DEV_NAME.to_ne_bytes());
        bytes.extend(vec![b'x'; length.into()]);
        bytes
    }

    fn length_of_name(mut attributes: Attributes<'_>) -> Option<usize> {
        Some(attributes.next()?.1.text()?.len())
    }

    /// What `get` reads if the kernel sends these answers, and how many requests it had.
    fn get(answers: &[Vec<u8>]) -> (io::Result<Option<usize>>, usize) {
        asked(answers, |netlink| {
            netlink.get(DEVICE_GET, &[], length_of_name)
        })
    }

    /// The outcome of `ask` if the kernel sends these answers, and how many requests it had.
    fn asked<T>(answers: &[Vec<u8>], ask: impl FnOnce(&RdmaNetlink) -> T) -> (T, usize) {
        let (ours, kernel) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC,
        )
        .unwrap();
        for answer in answers {
            send(kernel.as_raw_fd(), answer, MsgFlags::empty()).unwrap();
        }
        let found = ask(&RdmaNetlink(ours));
        let requested = || recv(kernel.as_raw_fd(), &mut [0; 64], MsgFlags::MSG_DONTWAIT);
        let requests = std::iter::repeat_with(requested).take_while(|got| matches!(got, Ok(1..)));
        (found, requests.count())
    }

    #[test]
    fn an_object_is_requested_once() {
        let (found, requests) = get(&[named(8)]);
        assert_eq!((found.unwrap(), requests), (Some(8), 1));
    }

    #[test]
    fn an_object_larger_than_most_is_requested_again() {
        let large = named(1000);
        let (found, requests) = get(&[large.clone(), large]);
        assert_eq!((found.unwrap(), requests), (Some(1000), 2));
    }

    /// A datagram of a dump: objects with names of these lengths.
    fn part(lengths: &[u16]) -> Vec<u8> {
        lengths.iter().flat_map(|length| named(*length)).collect()
    }

    fn end() -> Vec<u8> {
        let mut bytes = 20_u32.to_ne_bytes().to_vec();
        bytes.extend(3_u16.to_ne_bytes());
        bytes.resize(20, 0);
        bytes
    }

    /// What `devices` reads of datagrams with these devices, none being the end of a dump, and how
    /// many requests it had.
    fn devices(datagrams: &[&[u16]]) -> (io::Result<Vec<usize>>, usize) {
        let answers = datagrams.iter().map(|lengths| match lengths {
            [] => end(),
            lengths => part(lengths),
        });
        let ask = |netlink: &RdmaNetlink| netlink.devices(length_of_name);
        asked(&answers.collect::<Vec<_>>(), ask)
    }

    #[test]
    fn devices_that_do_not_change_are_listed_twice() {
        let (found, requests) = devices(&[&[4], &[8], &[], &[4], &[8], &[]]);
        assert_eq!((found.unwrap(), requests), (vec![4, 8], 2));
        let (found, requests) = devices(&[&[]]);
        assert_eq!((found.unwrap(), requests), (vec![], 1));
    }

    /// The kernel continues at a position: the rest of a list lacks a device if an earlier one is
    /// removed in between.
    #[test]
    fn a_device_that_a_removal_has_hidden_is_found() {
        let (found, requests) = devices(&[&[4], &[], &[8], &[], &[8], &[]]);
        assert_eq!((found.unwrap(), requests), (vec![8], 3));
        let (lost, whole): ([&[u16]; 3], [&[u16]; 3]) = ([&[4], &[12], &[]], [&[8], &[12], &[]]);
        let (found, requests) = devices(&[lost, whole, whole].concat());
        assert_eq!((found.unwrap(), requests), (vec![8, 12], 3));
    }

    #[test]
    fn a_list_that_never_stops_changing_is_an_error() {
        let lengths: Vec<[u16; 1]> = (1..=8).map(|length| [length * 4]).collect();
        let dumps = lengths.iter().flat_map(|one| [one, &[][..]]);
        let (found, requests) = devices(&dumps.collect::<Vec<_>>());
        assert_eq!(found.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
        assert_eq!(requests, DUMPS);
    }

    #[test]
    fn an_object_larger_than_any_is_an_error() {
        let larger_than_any = vec![0; BUFFER_BYTES + 1];
        let (found, requests) = get(&[larger_than_any.clone(), larger_than_any]);
        assert_eq!(found.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(requests, 2);
    }
}
