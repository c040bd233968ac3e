//! Descriptors whose other end belongs to a test.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::*;
use crate::provider::stub::Stub;

/// A file of a context, and its other end.
pub(crate) fn file() -> (Arc<RevocableFile>, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    let file = File::from(OwnedFd::from(near));
    (Arc::new(RevocableFile::new(file)), far)
}

fn readable() -> (Context, Readable, UnixStream) {
    let context = Stub::new(false).open();
    let (file, far) = file();
    let readable = Readable::new(&context, file);
    (context, readable, far)
}

#[test]
fn a_record_is_read_whole() {
    let (_context, readable, mut far) = readable();
    assert_eq!(readable.read::<u64>(), Ok(None));
    far.write_all(&7_u64.to_ne_bytes()).unwrap();
    assert_eq!(readable.read(), Ok(Some(7_u64)));
    assert_eq!(readable.read::<u64>(), Ok(None));
    far.write_all(&[1, 2, 3]).unwrap();
    assert_eq!(readable.read::<u64>(), Err(Error::wait(libc::EPROTO)));
}

#[test]
fn a_wait_ends_with_a_record_or_at_its_deadline() {
    let (_context, readable, mut far) = readable();
    // Other announcements of this host may end a wait early.
    while readable.wait(Some(Instant::now())).unwrap() {}
    // A wait that is interrupted before its deadline returns true.
    let soon = || Some(Instant::now() + Duration::from_millis(2));
    while !readable.wait(soon()).unwrap() {}
    far.write_all(&7_u64.to_ne_bytes()).unwrap();
    assert_eq!(readable.wait(None), Ok(true));
    assert_eq!(readable.wait(Some(Instant::now())), Ok(true));
}

#[test]
fn a_wait_ends_when_the_context_is_closed() {
    let (context, readable, _far) = readable();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| while readable.wait(None).unwrap() && !context.is_closed() {});
        context.close();
        waiter.join().unwrap();
    });
    assert!(context.is_closed());
    assert_eq!(readable.wait(Some(Instant::now())), Ok(true));
    let closed = Readable::new(&context, file().0);
    assert_eq!(closed.wait(None), Ok(true));
}

#[test]
fn a_failing_descriptor_closes_the_context() {
    let context = Stub::new(false).open();
    let (file, far) = file();
    // Closing one end with unread bytes resets the other.
    file.with(|mut file| file.write_all(b"x").unwrap());
    let readable = Readable::new(&context, file);
    drop(far);
    assert_eq!(readable.read::<u64>(), Err(context.closed_error()));
    assert!(context.is_closed());
}

#[test]
fn a_closed_file_is_not_read() {
    let context = Stub::new(false).open();
    let (file, mut far) = file();
    let readable = Readable::new(&context, Arc::clone(&file));
    file.close(|_| ());
    assert_eq!(readable.read::<u64>(), Err(context.closed_error()));
    assert_eq!(far.read(&mut [0]).unwrap(), 0);
}

#[test]
fn waits_are_rounded_up_and_bounded() {
    assert_eq!(timeout(None), EpollTimeout::NONE);
    assert_eq!(timeout(Some(Duration::ZERO)), EpollTimeout::ZERO);
    let soon = Duration::from_micros(2500);
    assert_eq!(timeout(Some(soon)), EpollTimeout::from(3_u8));
    let whole = Duration::from_millis(7);
    assert_eq!(timeout(Some(whole)), EpollTimeout::from(7_u8));
    assert_eq!(timeout(Some(Duration::MAX)), EpollTimeout::MAX);
}
