//! A connection to ibacm, with deadlines.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, SockaddrLike, UnixAddr, connect, recv,
    send, setsockopt, socket, sockopt,
};
use nix::sys::stat::{Mode, stat};
use nix::sys::time::{TimeVal, TimeValLike as _};

use super::rundir::Rundir;

/// More than the digits of a port and a newline.
const LONGEST_PORT: u64 = 16;

/// A connection for one query at a time.
#[derive(Debug)]
pub(super) struct Connection(OwnedFd);

impl Connection {
    /// Connects to the ibacm of a directory: by TCP if that has a port file,
    /// otherwise by its socket. `ETIMEDOUT` at the deadline.
    pub(super) fn open(rundir: &Rundir, until: impl FnOnce() -> Instant) -> nix::Result<Self> {
        if let Some(port) = port(rundir.port_file()) {
            let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
            Self::connect(AddressFamily::Inet, &SockaddrIn::from(address), until())
        } else {
            // Most hosts have none: saves creating a socket.
            stat(rundir.socket())?;
            let address = UnixAddr::new(rundir.socket())?;
            Self::connect(AddressFamily::Unix, &address, until())
        }
    }

    fn connect(
        family: AddressFamily,
        address: &dyn SockaddrLike,
        until: Instant,
    ) -> nix::Result<Self> {
        let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        // A non-blocking connect to a Unix socket fails if the backlog is full; a
        // blocking one waits, up to the send timeout.
        loop {
            setsockopt(&socket, sockopt::SendTimeout, &left(until)?)?;
            match connect(socket.as_raw_fd(), address) {
                // The connect completed after the signal.
                Ok(()) | Err(Errno::EISCONN) => return Ok(Self(socket)),
                // What has timed out may be one of several timeouts.
                Err(Errno::EINTR | Errno::EALREADY | Errno::EAGAIN | Errno::EINPROGRESS) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Whether the connection is open and has no unread bytes.
    pub(super) fn is_idle(&self) -> bool {
        let look = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        recv(self.0.as_raw_fd(), &mut [0], look) == Err(Errno::EAGAIN)
    }

    /// Sends all of a message.
    pub(super) fn send(&self, mut message: &[u8], until: Instant) -> nix::Result<()> {
        while !message.is_empty() {
            setsockopt(&self.0, sockopt::SendTimeout, &left(until)?)?;
            match send(self.0.as_raw_fd(), message, MsgFlags::MSG_NOSIGNAL) {
                Ok(sent) => message = message.get(sent..).unwrap_or_default(),
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Receives at least one byte; `ECONNRESET` if the daemon ended the connection.
    pub(super) fn receive(&self, buffer: &mut [u8], until: Instant) -> nix::Result<usize> {
        loop {
            setsockopt(&self.0, sockopt::ReceiveTimeout, &left(until)?)?;
            match recv(self.0.as_raw_fd(), buffer, MsgFlags::empty()) {
                Ok(0) => return Err(Errno::ECONNRESET),
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                received => return received,
            }
        }
    }
}

/// The time left as a socket timeout, for which zero would mean none. An hour at most: whoever has
/// waited for as long waits again.
fn left(until: Instant) -> nix::Result<TimeVal> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Errno::ETIMEDOUT);
    }
    let most = Duration::from_secs(3600);
    let micros = i64::try_from(left.min(most).as_micros()).unwrap_or(1);
    Ok(TimeVal::microseconds(micros.max(1)))
}

/// The port of the port file; `None` without the file or without a port in it.
fn port(port_file: &CStr) -> Option<u16> {
    // A FIFO of this name must not block.
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(open(port_file, flags, Mode::empty()).ok()?);
    let mut text = String::new();
    file.take(LONGEST_PORT).read_to_string(&mut text).ok()?;
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    let port = text.get(..end.unwrap_or(text.len()))?.parse().ok()?;
    (port != 0).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn port(rundir: &Path) -> Option<u16> {
        super::port(Rundir::at(rundir).port_file())
    }

    #[test]
    fn a_port_file_is_read_as_c_reads_it() {
        let rundir = tempfile::tempdir().unwrap();
        assert_eq!(port(rundir.path()), None);
        for (text, expected) in [
            ("6125\n", Some(6125)),
            (" \n6125", Some(6125)),
            ("6125 and more than sixteen bytes", Some(6125)),
            ("0\n", None),
            ("", None),
            ("port", None),
            ("70000", None),
            ("-1", None),
        ] {
            fs::write(rundir.path().join("ibacm.port"), text).unwrap();
            assert_eq!(port(rundir.path()), expected, "{text:?}");
        }
    }

    #[test]
    fn a_fifo_as_port_file_does_not_block() {
        let rundir = tempfile::tempdir().unwrap();
        let file = rundir.path().join("ibacm.port");
        nix::unistd::mkfifo(&file, Mode::S_IRUSR).unwrap();
        assert_eq!(port(rundir.path()), None);
    }

    #[test]
    fn a_path_too_long_for_a_socket_counts_as_absence() {
        let folder = tempfile::tempdir().unwrap();
        let rundir = folder.path().join("long/".repeat(40));
        fs::create_dir_all(&rundir).unwrap();
        fs::write(rundir.join("ibacm.sock"), []).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let refused = Connection::open(&Rundir::at(&rundir), || until).unwrap_err();
        assert_eq!(refused, Errno::ENAMETOOLONG);
    }
}
