//! Listeners whose calls do not wait, and `poll(2)`.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm::{Cause, Connector, Error, Listener, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;

use super::accept;
use super::rstream::expect_end;

fn is_ready(descriptor: &impl AsFd, wait: Duration) -> bool {
    let mut descriptors = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    poll(&mut descriptors, PollTimeout::try_from(wait).unwrap()).unwrap() == 1
}

fn listener(site: &Site) -> RdmaListener {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let listener = RdmaListener::new(listener, StreamOptions::new());
    listener.set_nonblocking(true).unwrap();
    assert!(is_ready(&listener, PATIENCE), "nobody has looked yet");
    listener
}

fn connect(address: SocketAddr) -> RdmaStream {
    let connector = Connector::new(address).deadline(PATIENCE);
    let stream = connector.connect_stream(StreamOptions::new()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The next stream, or why there are no more.
fn next(listener: &RdmaListener) -> std::io::Result<RdmaStream> {
    loop {
        match listener.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                assert!(is_ready(listener, PATIENCE), "nobody has come");
            }
            accepted => return accepted.map(|(stream, _)| stream),
        }
    }
}

/// Accepts until there is nothing to wait for. A stream that was dropped is heard of for a while.
fn settle(listener: &RdmaListener) {
    let until = Instant::now() + PATIENCE;
    loop {
        let refused = listener.accept().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock, "{refused}");
        if !is_ready(listener, Duration::from_millis(20)) {
            return;
        }
        assert!(Instant::now() < until, "it is always ready");
    }
}

#[case]
fn poll_reports_peers(site: &Site) {
    let listener = listener(site);
    let address = listener.local_addr().unwrap();
    for round in 0..3 {
        settle(&listener);
        thread::scope(|scope| {
            let client = scope.spawn(|| {
                let stream = connect(address);
                (&stream).write_all(&[round]).unwrap();
                // While it waits, siw's peer hears of what it has missed.
                expect_end(site, &stream);
            });
            let mut stream = next(&listener).unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            assert_eq!(byte, [round]);
            drop(stream);
            client.join().unwrap();
        });
    }
    for _ in 0..3 {
        listener.set_nonblocking(false).unwrap();
        thread::scope(|scope| {
            let client = scope.spawn(|| connect(address));
            let accepted = accept(&listener);
            drop((client.join().unwrap(), accepted));
        });
        listener.set_nonblocking(true).unwrap();
        assert!(is_ready(&listener, PATIENCE), "nobody has looked yet");
        settle(&listener);
    }
}

/// A reader of the listener's node reads all that comes for the node, and tells the listener.
#[case]
fn poll_reports_what_another_call_has_read(site: &Site) {
    let listener = listener(site);
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| connect(address));
        let reader = next(&listener).unwrap();
        let first = first.join().unwrap();
        let reading = scope.spawn(move || {
            { &reader }.read_exact(&mut [0; 2]).unwrap();
            expect_end(site, &reader);
        });
        (&first).write_all(b"1").unwrap();
        for _ in 0..5 {
            let client = scope.spawn(|| drop(connect(address)));
            expect_end(site, &next(&listener).unwrap());
            client.join().unwrap();
        }
        (&first).write_all(b"2").unwrap();
        drop(first);
        reading.join().unwrap();
    });
}

#[case]
fn poll_reports_the_end(site: &Site) {
    let listener = listener(site);
    let stop = listener.stop_handle();
    settle(&listener);
    thread::scope(|scope| {
        scope.spawn(|| stop.stop());
        let error = next(&listener).unwrap_err();
        let error = error.get_ref().unwrap().downcast_ref::<Error>().unwrap();
        assert!(matches!(error.cause(), Cause::Stopped), "{error}");
    });
    let mut incoming = listener.incoming();
    assert!(incoming.next().is_none());
    // The handle outlives the listener's descriptor.
    drop(listener);
    stop.stop();
}

#[case]
fn an_iterator_does_not_wait(site: &Site) {
    let listener = listener(site);
    settle(&listener);
    let refused = listener.incoming().next().unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
}

const CLIENTS: usize = 4;

/// One thread waits for peers and for their bytes.
#[case]
fn one_thread_accepts_and_serves(site: &Site) {
    let listener = listener(site);
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let stream = connect(address);
                for round in 0..20 {
                    (&stream).write_all(&[round; 100]).unwrap();
                    let mut reply = [0; 100];
                    (&stream).read_exact(&mut reply).unwrap();
                    assert_eq!(reply, [round; 100]);
                }
            });
        }
        let (mut streams, mut ended) = (Vec::new(), 0);
        while ended < CLIENTS {
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true).unwrap();
                streams.push(stream);
            }
            let before = streams.len();
            streams.retain(echo);
            ended += before - streams.len();
            if ended == CLIENTS {
                break;
            }
            let of_streams = streams.iter().map(AsFd::as_fd);
            let mut descriptors: Vec<_> = std::iter::once(listener.as_fd())
                .chain(of_streams)
                .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN))
                .collect();
            let wait = PollTimeout::try_from(SECOND * 20).unwrap();
            assert_ne!(poll(&mut descriptors, wait).unwrap(), 0, "nothing has come");
        }
    });
}

/// Returns what has come. Returns whether more may come.
fn echo(mut stream: &RdmaStream) -> bool {
    let mut buffer = [0; 100];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            // siw drops the end if its peer is gone by then.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return false,
            Ok(length) => stream.write_all(&buffer[..length]).unwrap(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(error) => panic!("{error}"),
        }
    }
}
