//! Peers whose process is killed.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;

use rdmacm::core::EventKind;
use rdmacm::{
    Cause, Connection, Connector, FailedRequest, Listener, MessageOptions, TransferError,
};
use rdmacm_core::AccessFlags;
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_verbs::{Buffer, RemoteMemory, WcStatus};

use super::{end_of, ending, receive_remote_memory, send_remote_memory};
use crate::child;
use crate::connector::asynchronous::on_one_thread;
use rdmacm_tests_macros::case;

pub(crate) const TASKS: &[(&str, fn())] = &[
    ("connects_until_killed", connects_until_killed),
    ("listens_until_killed", listens_until_killed),
    ("serves_until_killed", serves_until_killed),
];

/// The length of the memory that a peer exposes.
const LENGTH: usize = 1 << 16;

const PORT: &str = "RDMACM_TEST_PORT";

/// In a child.
fn connects_until_killed() {
    let port = std::env::var(PORT).unwrap().parse().unwrap();
    let address = child::site().v4(port);
    let client = Connector::new(address)
        .deadline(PATIENCE)
        .connect()
        .unwrap();
    client.send(b"hello").unwrap();
    assert_eq!(*client.receive().unwrap().unwrap(), *b"welcome");
    panic!("there is more to receive: {:?}", client.receive());
}

/// In a child.
fn listens_until_killed() {
    let listener = Listener::bind(child::site().v4(0)).unwrap();
    println!("{}", listener.local_addr().port());
    let server = listener.accept(PATIENCE).unwrap().accept().unwrap();
    assert_eq!(*server.receive().unwrap().unwrap(), *b"hello");
    server.send(b"welcome").unwrap();
    panic!("there is more to receive: {:?}", server.receive());
}

/// In a child: exposes memory and receives messages.
fn serves_until_killed() {
    let messages = MessageOptions::new().size(LENGTH);
    let listener = Listener::options();
    let listener = listener.bind(child::site().v4(0)).unwrap();
    println!("{}", listener.local_addr().port());
    let server = listener
        .accept(PATIENCE)
        .unwrap()
        .accept_messages(messages.clone())
        .unwrap();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    let exposed = server.expose(LENGTH, access).unwrap();
    // On siw the connecting side sends first.
    assert_eq!(*server.receive().unwrap().unwrap(), *b"hello");
    send_remote_memory(&server, exposed.remote());
    loop {
        server.receive().unwrap().unwrap();
    }
}

/// A peer process.
struct Peer(Child);

impl Peer {
    fn connecting(site: &Site, port: u16) -> Self {
        let mut command = child::task_at("connects_until_killed", site);
        Self(command.env(PORT, port.to_string()).spawn().unwrap())
    }

    /// The peer, and the port it listens on.
    fn listening(site: &Site) -> (Self, u16) {
        Self::doing("listens_until_killed", site)
    }

    fn doing(task: &str, site: &Site) -> (Self, u16) {
        let mut command = child::task_at(task, site);
        let mut peer = Self(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        let output = peer.0.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        (peer, line.trim().parse().unwrap())
    }

    /// Does not wait for its exit, which may need an answer.
    fn kill(&mut self) {
        self.0.kill().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Still running if the test has failed; otherwise it is exiting.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Receives while the peer is killed.
fn notices_it(connection: &Connection, mut peer: Peer) {
    let received = thread::scope(|scope| {
        let waiting = scope.spawn(|| connection.receive());
        peer.kill();
        waiting.join().unwrap()
    });
    assert_eq!(end_of(received), EventKind::Disconnected);
}

async fn a_task_notices_it(connection: &rdmacm::tokio::Connection, mut peer: Peer) {
    let (received, ()) = tokio::join!(connection.receive(), async { peer.kill() });
    assert_eq!(end_of(received), EventKind::Disconnected);
}

#[case]
fn the_accepting_side_detects_it(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let peer = Peer::connecting(site, listener.local_addr().port());
    let server = listener.accept(PATIENCE).unwrap().accept().unwrap();
    server.set_deadline(PATIENCE);
    assert_eq!(*server.receive().unwrap().unwrap(), *b"hello");
    server.send(b"welcome").unwrap();
    notices_it(&server, peer);
}

#[case]
fn the_connecting_side_detects_it(site: &Site) {
    let (peer, port) = Peer::listening(site);
    let connector = Connector::new(site.v4(port)).deadline(PATIENCE);
    let client = connector.connect().unwrap();
    client.set_deadline(PATIENCE);
    client.send(b"hello").unwrap();
    assert_eq!(*client.receive().unwrap().unwrap(), *b"welcome");
    notices_it(&client, peer);
}

#[case]
fn the_accepting_side_detects_it_on_tokio(site: &Site) {
    on_one_thread().block_on(async {
        let listener = rdmacm::tokio::Listener::bind(site.v4(0)).unwrap();
        let peer = Peer::connecting(site, listener.local_addr().port());
        let incoming = listener.accept(PATIENCE).await.unwrap();
        let server = incoming.accept().await.unwrap();
        server.set_deadline(PATIENCE);
        assert_eq!(*server.receive().await.unwrap().unwrap(), *b"hello");
        server.send(b"welcome").await.unwrap();
        a_task_notices_it(&server, peer).await;
    });
}

#[case]
fn the_connecting_side_detects_it_on_tokio(site: &Site) {
    on_one_thread().block_on(async {
        let (peer, port) = Peer::listening(site);
        let connector = rdmacm::tokio::Connector::new(site.v4(port));
        let client = connector.deadline(PATIENCE).connect().await.unwrap();
        client.set_deadline(PATIENCE);
        client.send(b"hello").await.unwrap();
        assert_eq!(*client.receive().await.unwrap().unwrap(), *b"welcome");
        a_task_notices_it(&client, peer).await;
    });
}

/// The number of peers to kill, each at a different point.
const KILLED: usize = 4;
/// The number of operations before a peer is killed.
const DONE: usize = 8;

/// Whether the peer's device has refused a request, and its kernel has not disconnected within the
/// second for which the connection waits then. A transfer may begin to count a moment later.
fn has_waited_for_disconnect(error: &rdmacm::Error, request: FailedRequest) -> bool {
    request.status != WcStatus::WR_FLUSH_ERR && error.elapsed() > SECOND / 2
}

type Doing = fn(&Connection, Buffer, RemoteMemory) -> Result<Buffer, TransferError<Buffer>>;

/// While a killed process's memory is freed, and before its kernel disconnects, its
/// device answers requests with errors.
fn the_end_is_reported(site: &Site, doing: Doing) {
    for _ in 0..KILLED {
        let (mut peer, port) = Peer::doing("serves_until_killed", site);
        let connector = Connector::new(site.v4(port)).deadline(PATIENCE);
        let client = connector.connect().unwrap();
        client.set_deadline(PATIENCE);
        client.send(b"hello").unwrap();
        let remote = receive_remote_memory(&client);
        let (done, has_done) = mpsc::channel();
        let error = thread::scope(|scope| {
            let client = &client;
            // It owns the sender: if it fails before, nothing more is waited for.
            let working = scope.spawn(move || {
                let mut buffer = client.allocate(LENGTH).unwrap();
                loop {
                    buffer = match doing(client, buffer, remote) {
                        Ok(buffer) => buffer,
                        Err(failed) => return failed.error,
                    };
                    done.send(()).unwrap();
                }
            });
            has_done.iter().take(DONE).for_each(drop);
            peer.kill();
            working.join().unwrap()
        });
        assert!(error.is_closed(), "{error}");
        let ended = client.closed(PATIENCE).unwrap();
        assert_eq!(ended.kind(), EventKind::Disconnected, "{error}");
        assert_eq!(ended.failed_request(), error.failed_request(), "{error}");
        let received = client.receive();
        if let Cause::Request(request) = error.cause() {
            assert!(has_waited_for_disconnect(&error, *request), "{error}");
            assert_eq!(received.unwrap_err().failed_request(), Some(*request));
        } else {
            assert_eq!(ending(&error), EventKind::Disconnected, "{error}");
            assert_eq!(end_of(received), EventKind::Disconnected);
        }
        let kind = io::Error::from(error).kind();
        assert_eq!(kind, io::ErrorKind::ConnectionReset);
    }
}

#[case]
fn a_read_reports_the_disconnect_and_not_the_flush(site: &Site) {
    the_end_is_reported(site, Connection::read);
}

#[case]
fn a_write_reports_the_disconnect_and_not_the_flush(site: &Site) {
    the_end_is_reported(site, Connection::write);
}

#[case]
fn a_send_reports_the_disconnect_and_not_the_flush(site: &Site) {
    the_end_is_reported(site, |client, message, _| client.send_buffer(message));
}
