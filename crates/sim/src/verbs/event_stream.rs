//! Descriptors on which events are reported.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

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
pub(super) struct EventStream(UnixStream);

impl EventStream {
    /// A stream, and the descriptor at which the program reads.
    pub(super) fn new() -> io::Result<(Self, StreamId, OwnedFd)> {
        let (mut read, write) = UnixStream::pair()?;
        write.set_nonblocking(true)?;
        // A socket that is closed with unread data resets the connection.
        read.write_all(&[0])?;
        let id = StreamId::of(read.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        Ok((Self(write), id, read.into()))
    }

    pub(super) fn report_completion(&mut self, user_handle: u64) {
        self.write(CompletionEvent { user_handle }.as_bytes());
    }

    pub(super) fn report_async(&mut self, kind: AsyncEventKind, element: u64) {
        let event = AsyncEvent {
            element,
            kind,
            reserved: Reserved::ZERO,
        };
        self.write(event.as_bytes());
    }

    /// Nobody reads what does not fit, and nobody reads from a stream that is closed.
    fn write(&mut self, event: &[u8]) {
        let _ = self.0.write_all(event);
    }
}
