//! Peers whose process is killed, or stopped.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rdmacm::{Connector, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;

use crate::child;

pub(crate) const TASKS: &[(&str, fn())] = &[("listens_for_a_stream", listens_for_a_stream)];

/// In a child: answers one byte, and reads no more.
fn listens_for_a_stream() {
    let listener = RdmaListener::bind(child::site().v4(0)).unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let (server, _) = listener.accept().unwrap();
    (&server).read_exact(&mut [0]).unwrap();
    (&server).write_all(&[1]).unwrap();
    loop {
        thread::park();
    }
}

/// A peer process, and a stream to it.
struct Peer {
    process: Process,
    stream: RdmaStream,
}

struct Process(Child);

impl Peer {
    fn new(site: &Site) -> Self {
        Self::with(site, StreamOptions::new())
    }

    fn with(site: &Site, options: StreamOptions) -> Self {
        let mut command = child::task_at("listens_for_a_stream", site);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let address = site.v4(line.trim().parse().unwrap());
        let connector = Connector::new(address).deadline(PATIENCE);
        let stream = connector.connect_stream(options).unwrap();
        (&stream).write_all(&[0]).unwrap();
        (&stream).read_exact(&mut [0]).unwrap();
        Self {
            process: Process(process),
            stream,
        }
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.process.0.id().try_into().unwrap());
        kill(process, signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Never a false end of the stream.
#[case]
fn a_reader_is_reset(site: &Site) {
    expect_reset(&Peer::new(site));
    expect_reset(&Peer::with(site, StreamOptions::new().shared_receives(500)));
}

fn expect_reset(peer: &Peer) {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| (&peer.stream).read(&mut [0]));
        peer.signal(Signal::SIGKILL);
        let error = waiting.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    });
    let errors = [
        (&peer.stream).read(&mut [0]).unwrap_err(),
        (&peer.stream).write(&[0]).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        let error = rdmacm::Error::from_io(&error).unwrap();
        assert!(error.is_closed() && !error.is_retryable(), "{error}");
    }
}

#[case]
fn a_writer_is_reset(site: &Site) {
    let peer = Peer::new(site);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            loop {
                if let Err(error) = (&peer.stream).write(&[7; 10_000]) {
                    break error;
                }
            }
        });
        peer.signal(Signal::SIGKILL);
        let error = waiting.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    });
}

/// Its device acknowledges what its memory has room for, so a close returns.
#[case]
fn a_stopped_peer_does_not_delay_a_close(site: &Site) {
    let peer = Peer::new(site);
    peer.signal(Signal::SIGSTOP);
    peer.stream.set_write_timeout(Some(SECOND / 10)).unwrap();
    let error = loop {
        if let Err(error) = (&peer.stream).write(&[7; 10_000]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let Peer { process, stream } = peer;
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!((&stream).read(&mut [0]).unwrap(), 0);
    stream.close(PATIENCE).unwrap();
    drop(process);
}
