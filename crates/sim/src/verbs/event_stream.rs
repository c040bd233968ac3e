//! Descriptors on which events are reported.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::{AsyncEvent, AsyncEventKind, CompletionEvent};
use zerocopy::IntoBytes;

/// What identifies the descriptors of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamId {
    device: u64,
    inode: u64,
}

impl StreamId {
    /// That of a descriptor of this process, which may be a duplicate; `None` if it is
    /// not open.
    pub(super) fn of(descriptor: i32) -> Option<Self> {
        let metadata = std::fs::metadata(format!("/proc/self/fd/{descriptor}")).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

/// Where the simulation writes events. When it is dropped, reading at the other end
/// fails, as it does with the kernel when the device has gone.
#[derive(Debug)]
pub(super) struct EventStream {
    socket: UnixStream,
    /// What the socket has no room for. The kernel keeps any number of events.
    unsent: VecDeque<u8>,
}

impl EventStream {
    /// A stream, and the descriptor at which the program reads.
    pub(super) fn new() -> io::Result<(Self, StreamId, OwnedFd)> {
        let (mut read, write) = UnixStream::pair()?;
        write.set_nonblocking(true)?;
        // A socket that is closed with unread data resets the connection.
        read.write_all(&[0])?;
        let id = StreamId::of(read.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        let stream = Self {
            socket: write,
            unsent: VecDeque::new(),
        };
        Ok((stream, id, read.into()))
    }

    /// Whether the program has closed all descriptors at which it could read.
    pub(super) fn is_closed(&self) -> bool {
        let mut sockets = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        let polled = poll(&mut sockets, PollTimeout::ZERO);
        let [socket] = sockets;
        let closed = |events: PollFlags| events.contains(PollFlags::POLLHUP);
        polled.is_ok() && socket.revents().is_some_and(closed)
    }

    /// Returns whether it is sent, with all before it.
    pub(super) fn report_completion(&mut self, user_handle: u64) -> bool {
        self.write(CompletionEvent { user_handle }.as_bytes())
    }

    /// Returns whether it is sent, with all before it.
    pub(super) fn report_async(&mut self, kind: AsyncEventKind, element: u64) -> bool {
        let event = AsyncEvent {
            element,
            kind,
            reserved: Reserved::ZERO,
        };
        self.write(event.as_bytes())
    }

    fn write(&mut self, event: &[u8]) -> bool {
        self.unsent.extend(event);
        self.send_unsent()
    }

    /// Writes what there is room for by now. Returns whether it is all.
    pub(super) fn send_unsent(&mut self) -> bool {
        while !self.unsent.is_empty() {
            let (first, _) = self.unsent.as_slices();
            match self.socket.write(first) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // Nobody reads from a stream that is closed.
                Err(_) => self.unsent.clear(),
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::time::Duration;

    use zerocopy::FromBytes;

    use super::*;
    use crate::Fabric;
    use crate::verbs::channel::Channel;

    #[test]
    fn events_that_nobody_has_read_are_kept() {
        const EVENTS: u64 = 5_000;
        let (mut stream, _, descriptor) = EventStream::new().unwrap();
        for handle in 0..EVENTS {
            stream.report_completion(handle);
        }
        assert!(!stream.send_unsent(), "there was room for all of them");
        let mut reader = File::from(descriptor);
        for handle in 0..EVENTS {
            let mut event = [0; size_of::<CompletionEvent>()];
            reader.read_exact(&mut event).unwrap();
            let event = CompletionEvent::read_from_bytes(&event).unwrap();
            assert_eq!(event.user_handle, handle);
            stream.send_unsent();
        }
        assert!(stream.send_unsent());
    }

    /// Tasks of a runtime may read events for long without a command.
    #[test]
    fn kept_events_are_sent_when_the_clock_moves_or_a_program_asks_what_is_due() {
        // More than sockets have room for, each time.
        const KEPT: usize = 16 << 20;
        let fabric = Fabric::roce(["host"]);
        let host = fabric.find_host("host").unwrap();
        let file = host.open().unwrap();
        let (mut events, id, descriptor) = EventStream::new().unwrap();
        events.unsent.extend(std::iter::repeat_n(0, KEPT));
        host.state().change(|state| {
            let verbs = state.verbs(0, 0).unwrap();
            verbs.channels.insert(id, Channel { context: 1, events });
            verbs.has_unsent = true;
        });
        let mut reader = UnixStream::from(descriptor);
        reader.set_nonblocking(true).unwrap();
        let mut read = || {
            let mut bytes = Vec::new();
            let end = reader.read_to_end(&mut bytes).unwrap_err();
            assert_eq!(end.kind(), io::ErrorKind::WouldBlock);
            bytes.len()
        };
        let asks: [&dyn Fn(); 3] = [
            &|| assert_eq!(file.next_due(), None),
            &|| file.advance_to(file.now()),
            &|| fabric.advance(Duration::ZERO),
        ];
        assert_ne!(read(), 0);
        for ask in asks {
            assert_eq!(read(), 0);
            ask();
            assert_ne!(read(), 0);
        }
    }
}
