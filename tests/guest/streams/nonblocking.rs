//! Streams whose calls do not wait, and `poll(2)`.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use rdmacm::{Connector, Listener, Node, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;

use super::{Pair, accept, bytes};

/// Which of the streams are ready.
fn ready(streams: &[&RdmaStream], wait: Duration) -> Vec<bool> {
    let mut descriptors: Vec<_> = streams
        .iter()
        .map(|stream| PollFd::new(stream.as_fd(), PollFlags::POLLIN))
        .collect();
    poll(&mut descriptors, PollTimeout::try_from(wait).unwrap()).unwrap();
    descriptors.iter().map(|one| one.any().unwrap()).collect()
}

pub(super) fn is_ready(stream: &RdmaStream, wait: Duration) -> bool {
    ready(&[stream], wait)[0]
}

/// Repeats a call until it does not fail with `WouldBlock`.
pub(super) fn when_ready<T>(
    stream: &RdmaStream,
    mut call: impl FnMut(&RdmaStream) -> std::io::Result<T>,
) -> std::io::Result<T> {
    loop {
        match call(stream) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                assert!(is_ready(stream, PATIENCE), "nothing has come");
            }
            outcome => return outcome,
        }
    }
}

/// Calls until there is nothing to wait for.
pub(super) fn settle(
    stream: &RdmaStream,
    mut call: impl FnMut(&RdmaStream) -> std::io::Result<usize>,
) {
    let until = Instant::now() + PATIENCE;
    loop {
        let refused = call(stream).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock, "{refused}");
        if !is_ready(stream, Duration::ZERO) {
            return;
        }
        assert!(Instant::now() < until, "it is always ready");
    }
}

/// Writes until a write is refused for want of room at the peer. Returns how many bytes were
/// written.
pub(super) fn fill(stream: &RdmaStream) -> usize {
    let until = Instant::now() + PATIENCE;
    let mut filled = 0;
    loop {
        match { stream }.write(&[1; 1000]) {
            Ok(bytes) => filled += bytes,
            Err(refused) => {
                assert_eq!(refused.kind(), ErrorKind::WouldBlock, "{refused}");
                if !is_ready(stream, Duration::ZERO) {
                    return filled;
                }
            }
        }
        assert!(Instant::now() < until, "there is always room");
    }
}

pub(super) fn nonblocking(stream: RdmaStream) -> RdmaStream {
    stream.set_nonblocking(true).unwrap();
    assert!(is_ready(&stream, PATIENCE), "nobody has looked yet");
    stream
}

#[case]
fn poll_reports_bytes_and_the_end(site: &Site) {
    let options = StreamOptions::new();
    reports_bytes_and_the_end(site, &options);
    reports_bytes_and_the_end(site, &options.shared_receives(500));
}

fn reports_bytes_and_the_end(site: &Site, options: &StreamOptions) {
    let Pair { client, server } = Pair::with(site, options, options);
    let server = nonblocking(server);
    for round in 0..10 {
        settle(&server, |mut server| server.read(&mut [0; 10]));
        (&client).write_all(&[round; 20]).unwrap();
        for _ in 0..2 {
            let mut read = [0; 10];
            when_ready(&server, |mut server| server.read_exact(&mut read)).unwrap();
            assert_eq!(read, [round; 10]);
        }
    }
    settle(&server, |server| server.peek(&mut [0]));
    client.shutdown(Shutdown::Write).unwrap();
    let end = when_ready(&server, |mut server| server.read(&mut [0]));
    assert_eq!(end.unwrap(), 0);
    expect_quiet_end(&server);
    server.set_nonblocking(false).unwrap();
    (&server).write_all(b"bye").unwrap();
    (&client).read_exact(&mut [0; 3]).unwrap();
}

/// Reads the end again while the descriptor is readable: what came with the end may still be there.
fn expect_quiet_end(stream: &RdmaStream) {
    let until = Instant::now() + PATIENCE;
    while is_ready(stream, Duration::ZERO) {
        assert_eq!({ stream }.read(&mut [0]).unwrap(), 0);
        assert!(Instant::now() < until, "the descriptor is always readable");
    }
}

/// A refused write that was given up is none either, although the peer has ended.
#[case]
fn the_end_of_both_directions_is_quiet(site: &Site) {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    let Pair { client, server } = Pair::with(site, &options, &options);
    // On siw the server sends nothing before.
    (&client).write_all(&[0]).unwrap();
    (&server).read_exact(&mut [0]).unwrap();
    let client = nonblocking(client);
    fill(&client);
    server.shutdown(Shutdown::Write).unwrap();
    let end = when_ready(&client, |mut client| client.read(&mut [0]));
    assert_eq!(end.unwrap(), 0);
    client.shutdown(Shutdown::Write).unwrap();
    assert!(
        is_ready(&client, PATIENCE),
        "whoever waits to write is woken"
    );
    let closed = (&client).write(&[0]).unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::BrokenPipe);
    expect_quiet_end(&client);
}

/// Neither direction that has ended is a reason to try again to write.
#[case]
fn a_writer_waits_for_room_after_an_end(site: &Site) {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    for has_peer_ended in [true, false] {
        let Pair { client, server } = Pair::with(site, &options, &options);
        // On siw the server sends nothing before.
        (&client).write_all(&[0]).unwrap();
        (&server).read_exact(&mut [0]).unwrap();
        let client = nonblocking(client);
        if has_peer_ended {
            server.shutdown(Shutdown::Write).unwrap();
            let end = when_ready(&client, |mut client| client.read(&mut [0]));
            assert_eq!(end.unwrap(), 0);
        } else {
            client.shutdown(Shutdown::Read).unwrap();
        }
        fill(&client);
    }
}

/// The end has come with the last bytes, which another stream's call has dispatched.
#[case]
fn poll_reports_an_end_behind_the_last_bytes(site: &Site) {
    let options = StreamOptions::new();
    let listener = RdmaListener::new(Listener::bind(site.v4(0)).unwrap(), options.clone());
    let [(quiet, _other), (stream, peer)] = [(); 2].map(|()| {
        let Pair { client, server } = Pair::by(&listener, &options);
        (&client).write_all(&[0]).unwrap();
        (&server).read_exact(&mut [0]).unwrap();
        (nonblocking(server), client)
    });
    settle(&stream, |mut stream| stream.read(&mut [0]));
    (&peer).write_all(&[7; 10]).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    for _ in 0..100 {
        let refused = (&quiet).read(&mut [0]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock, "{refused}");
    }
    let mut read = 0;
    while read < 10 {
        assert!(is_ready(&stream, PATIENCE), "after {read} bytes");
        match (&stream).read(&mut [0; 10]) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            Ok(bytes) => read += bytes,
        }
    }
    while let Err(error) = (&stream).read(&mut [0]) {
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
        assert!(is_ready(&stream, PATIENCE), "the end was not read");
    }
}

#[case]
fn poll_reports_room(site: &Site) {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    reports_room(site, &options);
    reports_room(site, &options.shared_receives(500));
}

fn reports_room(site: &Site, options: &StreamOptions) {
    let Pair { client, server } = Pair::with(site, options, options);
    let client = nonblocking(client);
    let mut written = 0;
    for _ in 0..5 {
        written += fill(&client);
        (&server).read_exact(&mut vec![0; written]).unwrap();
        written = when_ready(&client, |mut client| client.write(&[1; 1000])).unwrap();
    }
}

#[case]
fn poll_reports_a_lost_peer(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    (&client).write_all(b"x").unwrap();
    (&server).read_exact(&mut [0]).unwrap();
    let server = nonblocking(server);
    settle(&server, |mut server| server.read(&mut [0]));
    drop(client);
    let end = when_ready(&server, |mut server| server.read(&mut [0]));
    assert!(matches!(end, Ok(0)), "{end:?}");
    expect_quiet_end(&server);
    let refused = when_ready(&server, |mut server| server.write(b"x"));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

/// As a client that asks, and then waits for the answer.
#[case]
fn a_reply_is_reported_though_nobody_has_tried_to_read(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let client = nonblocking(client);
    for round in 0..3 {
        (&client).write_all(&[round]).unwrap();
        (&server).read_exact(&mut [0]).unwrap();
        (&server).write_all(&[round]).unwrap();
        assert!(is_ready(&client, PATIENCE));
        let mut reply = [9];
        when_ready(&client, |mut client| client.read_exact(&mut reply)).unwrap();
        assert_eq!(reply, [round]);
    }
}

/// An empty write finds nothing out.
#[case]
fn an_empty_write_does_not_end_the_wait_for_room(site: &Site) {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    let Pair { client, server } = Pair::with(site, &options, &options);
    let client = nonblocking(client);
    settle(&client, |mut client| client.read(&mut [0]));
    let written = fill(&client);
    assert_eq!((&client).write(&[]).unwrap(), 0);
    (&server).read_exact(&mut vec![0; written]).unwrap();
    assert!(is_ready(&client, PATIENCE));
    when_ready(&client, |mut client| client.write(&[1])).unwrap();
}

/// There mostly is room, which is no reason to write.
#[case]
fn a_reservation_that_succeeds_ends_the_wait_for_room(site: &Site) {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    let Pair { client, server } = Pair::with(site, &options, &options);
    let mut client = nonblocking(client);
    let mut send = |bytes| -> std::io::Result<usize> {
        let slot = client.reserve(bytes)?;
        let length = slot.len();
        slot.commit(length)?;
        Ok(length)
    };
    let mut written = 0;
    let refused = loop {
        match send(1000) {
            Ok(bytes) => written += bytes,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::WouldBlock, "{refused}");
    (&server).read_exact(&mut vec![0; written]).unwrap();
    let until = Instant::now() + PATIENCE;
    while send(1).is_err() {
        assert!(Instant::now() < until, "there is room");
        thread::yield_now();
    }
    settle(&client, |mut client| client.read(&mut [0]));
    (&server).read_exact(&mut [0]).unwrap();
}

/// What a call in one direction handles of the other one is told.
#[case]
fn poll_reports_both_directions(site: &Site) {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    let Pair { client, server } = Pair::with(site, &options, &options);
    (&client).write_all(b"x").unwrap();
    (&server).read_exact(&mut [0]).unwrap();
    let server = nonblocking(server);
    for _ in 0..20 {
        let mut written = 0;
        while let Ok(bytes) = (&server).write(&[1; 1000]) {
            written += bytes;
        }
        // Each call may find what the other one waits for.
        (&client).read_exact(&mut vec![0; written]).unwrap();
        let read = (&server).read(&mut [0]).unwrap_err();
        assert_eq!(read.kind(), ErrorKind::WouldBlock);
        let sent = when_ready(&server, |mut server| server.write(&[1; 10]));
        (&client).read_exact(&mut vec![0; sent.unwrap()]).unwrap();

        (&client).write_all(b"y").unwrap();
        let mut written = 0;
        while let Ok(bytes) = (&server).write(&[1; 1000]) {
            written += bytes;
        }
        when_ready(&server, |mut server| server.read_exact(&mut [0])).unwrap();
        (&client).read_exact(&mut vec![0; written]).unwrap();
    }
}

/// No more often than there are acknowledgements of what is in flight.
#[case]
fn a_writer_without_room_is_seldom_ready(site: &Site) {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    let Pair { client, server } = Pair::with(site, &options, &options);
    let client = nonblocking(client);
    while (&client).write(&[1; 1000]).is_ok() {}
    let until = Instant::now() + SECOND / 4;
    let mut count = 0;
    while Instant::now() < until {
        if is_ready(&client, Duration::from_millis(20)) {
            count += 1;
            let _ = (&client).write(&[1; 1000]);
        }
    }
    assert!(count < 50, "{count} times");
    drop(server);
}

/// About as many as the kernel allows in an epoll of the caller's.
const STREAMS: usize = 96;

#[case]
fn many_streams_of_a_node_have_descriptors(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let address = listener.local_addr();
    let small = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    let small = small.receives(16).sends(16);
    let listener = RdmaListener::new(listener, small.clone());
    thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            let node = Node::open().unwrap();
            let connect = |_| {
                let connector = Connector::new(address).deadline(PATIENCE);
                let connector = connector.with_node(&node);
                connector.connect_stream(small.clone()).unwrap()
            };
            (0..STREAMS).map(connect).collect::<Vec<_>>()
        });
        let accepted = (0..STREAMS).map(|_| nonblocking(accept(&listener).0));
        let accepted: Vec<_> = accepted.collect();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        for stream in &accepted {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
            epoll.add(stream.as_fd(), event).unwrap();
        }
        let connected = connecting.join().unwrap();
        assert_eq!(connected.len(), accepted.len());
    });
}

const CLIENTS: usize = 4;
const MESSAGES: usize = 50;

/// Returns what each stream sends, until all have ended.
fn serve(mut streams: Vec<RdmaStream>) {
    let mut buffer = vec![0; 3000];
    while !streams.is_empty() {
        let all: Vec<_> = streams.iter().collect();
        let ready = ready(&all, PATIENCE);
        assert!(ready.contains(&true), "nothing has come");
        let mut ready = ready.into_iter();
        streams.retain(|mut stream| {
            if !ready.next().unwrap() {
                return true;
            }
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => return false,
                    Ok(length) => stream.write_all(&buffer[..length]).unwrap(),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
}

#[case]
fn one_thread_serves_several_streams(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let address = listener.local_addr();
    let listener = RdmaListener::new(listener, StreamOptions::new());
    let sent = bytes(3000);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let connector = Connector::new(address).deadline(PATIENCE);
                let stream = connector.connect_stream(StreamOptions::new()).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                for _ in 0..MESSAGES {
                    (&stream).write_all(&sent).unwrap();
                    let mut reply = vec![0; sent.len()];
                    (&stream).read_exact(&mut reply).unwrap();
                    assert!(reply == sent);
                }
            });
        }
        let accepted = (0..CLIENTS).map(|_| nonblocking(accept(&listener).0));
        serve(accepted.collect());
    });
}
