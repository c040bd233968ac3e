//! Peers whose process is killed, or stopped.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rdmacm::{Cause, Connector, Listener, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft};
use rdmacm_tests_macros::case;
use rdmacm_verbs::WcStatus;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::nonblocking::{nonblocking, settle, when_ready};
use super::scripted_peer;
use crate::child;
use crate::connector::asynchronous::on_one_thread;

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

pub(super) struct Process(pub(super) Child);

impl Peer {
    fn new(site: &Site) -> Self {
        Self::with(site, StreamOptions::new())
    }

    fn with(site: &Site, options: StreamOptions) -> Self {
        let (process, address) = Process::start(site);
        let connector = Connector::new(address).deadline(PATIENCE);
        let stream = connector.connect_stream(options).unwrap();
        (&stream).write_all(&[0]).unwrap();
        (&stream).read_exact(&mut [0]).unwrap();
        Self { process, stream }
    }

    fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }
}

impl Process {
    /// Starts it, and returns its address when it listens.
    fn start(site: &Site) -> (Self, SocketAddr) {
        let mut command = child::task_at("listens_for_a_stream", site);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let port: u16 = line.trim().parse().unwrap();
        (Self(process), (site.v4, port).into())
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.0.id().try_into().unwrap());
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

#[case]
fn poll_reports_a_killed_peer(site: &Site) {
    for options in [
        StreamOptions::new(),
        StreamOptions::new().shared_receives(500),
    ] {
        let Peer { process, stream } = Peer::with(site, options);
        let stream = nonblocking(stream);
        settle(&stream, |mut stream| stream.read(&mut [0]));
        process.signal(Signal::SIGKILL);
        let read = when_ready(&stream, |mut stream| stream.read(&mut [0]));
        let written = when_ready(&stream, |mut stream| stream.write(&[0]));
        for error in [read.unwrap_err(), written.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
    }
}

#[case]
fn a_task_is_reset(site: &Site) {
    let (process, address) = Process::start(site);
    on_one_thread().block_on(async {
        let connector = rdmacm::tokio::Connector::new(address).deadline(PATIENCE);
        let connecting = connector.connect_stream(StreamOptions::new());
        let mut stream = connecting.await.unwrap();
        stream.write_all(&[0]).await.unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        let mut byte = [0];
        let killing = async { process.signal(Signal::SIGKILL) };
        let (read, ()) = tokio::join!(stream.read(&mut byte), killing);
        let errors = [read.unwrap_err(), stream.write(&[0]).await.unwrap_err()];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
    });
}

/// Its process lives, and nothing ends the connection but the requests that it does not answer.
#[case(waiting, needs(NeighbourUpdates))]
fn keep_alives_detect_a_silent_peer(site: &Site) {
    assert_eq!(site.soft, Soft::Rxe);
    let listener = Listener::bind(site.v4(0)).unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    let connector = connector.ack_timeout(15);
    let options = StreamOptions::new().keep_alive(SECOND / 5);
    let (peer, stream) = scripted_peer::accept(
        site,
        &listener,
        || connector.connect_stream(options),
        |_| (),
    );
    stream.set_read_timeout(Some(SECOND)).unwrap();
    let error = (&stream).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let connection = &peer.connection;
    let queue_pair = connection.id().with_queue_pair(connection.queue_pair());
    queue_pair.move_to_error().unwrap();
    let error = (&stream).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    let error = rdmacm::Error::from_io(&error).unwrap();
    match error.cause() {
        Cause::Request(error) => assert_eq!(error.status, WcStatus::RETRY_EXC_ERR),
        other => panic!("{other:?}"),
    }
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
