//! Writes that would have waited on streams whose calls do not wait, and `poll(2)` afterwards.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::Shutdown;
use std::time::Instant;

use rdmacm::{Listener, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;

use super::Pair;
use super::nonblocking::{fill, is_ready, nonblocking, settle, when_ready};

/// The peer's memory.
const BUFFER: u32 = 4096;

fn options() -> StreamOptions {
    let options = StreamOptions::new().receive_buffer(BUFFER);
    options.send_buffer(BUFFER).map_entries(1)
}

/// Writes until the peer's memory is full, in which so many bytes were written before, and a write
/// is refused.
fn fill_memory(stream: &RdmaStream, before: usize) -> usize {
    let until = Instant::now() + PATIENCE;
    let mut filled = 0;
    while before + filled < BUFFER as usize {
        assert!(Instant::now() < until, "{filled} bytes");
        filled += fill(stream);
    }
    filled
}

/// A client whose calls do not wait, and a server that may send.
fn pair(site: &Site) -> Pair {
    let options = options();
    let Pair { client, server } = Pair::with(site, &options, &options);
    (&client).write_all(b"x").unwrap();
    (&server).read_exact(&mut [0]).unwrap();
    let client = nonblocking(client);
    Pair { client, server }
}

fn read(mut stream: &RdmaStream) -> Result<usize> {
    stream.read(&mut [0])
}

#[case]
fn a_refused_write_without_room_does_not_keep_a_reader_awake(site: &Site) {
    let Pair { client, server } = pair(site);
    settle(&client, read);
    fill_memory(&client, 1);
    (&server).write_all(b"x").unwrap();
    assert_eq!(when_ready(&client, read).unwrap(), 1);
    settle(&client, read);
}

/// There is room for it by then.
#[case]
fn a_refused_write_that_is_given_up_does_not_keep_a_reader_awake(site: &Site) {
    let Pair { client, server } = pair(site);
    settle(&client, read);
    let filled = fill_memory(&client, 1);
    client.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    (&server).read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), filled);
    settle(&client, read);
    (&server).write_all(b"x").unwrap();
    assert_eq!(when_ready(&client, read).unwrap(), 1);
}

/// The notification of the room is mostly taken by another stream's calls, so that only the refused
/// write makes the descriptor readable.
#[case]
fn a_write_at_an_offset_does_not_end_the_wait_of_another_write(site: &Site) {
    let options = options();
    let listener = RdmaListener::new(Listener::bind(site.v4(0)).unwrap(), options.clone());
    let [(quiet, _other), (stream, peer)] = [(); 2].map(|()| {
        let Pair { client, server } = Pair::by(&listener, &options);
        (&client).write_all(b"x").unwrap();
        (&server).read_exact(&mut [0]).unwrap();
        (nonblocking(server), client)
    });
    let memory = peer.map(100, 0).unwrap();
    (&peer).write_all(b"m").unwrap();
    assert_eq!(when_ready(&stream, read).unwrap(), 1);
    stream.shutdown(Shutdown::Read).unwrap();
    assert_eq!(read(&stream).unwrap(), 0);
    let filled = fill_memory(&stream, 0);
    // There may be room for a part.
    let length = when_ready(&stream, |stream| stream.write_at(&[7; 100], 0)).unwrap();
    (&peer).read_exact(&mut vec![0; filled]).unwrap();
    for _ in 0..100 {
        assert_eq!(read(&quiet).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    assert!(is_ready(&stream, PATIENCE), "there is room");
    when_ready(&stream, |mut stream| stream.write(b"y")).unwrap();
    (&peer).read_exact(&mut [0]).unwrap();
    let mut written = [0; 100];
    memory.read(0, &mut written);
    assert_eq!(written[..length], [7; 100][..length]);
}
