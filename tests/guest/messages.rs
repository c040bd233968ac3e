//! Connections that carry messages.

use std::thread;

use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::setuid;
use rdmacm::core::EventKind;
use rdmacm::{Cause, Connection, Connector, Listener, Message, MessageOptions, Stage};
use rdmacm_core::AccessFlags;
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft};
use rdmacm_verbs::{RemoteMemory, WcStatus};

use crate::child;
use rdmacm_tests_macros::case;

pub(crate) mod asynchronous;
pub(crate) mod dropped_futures;
pub(crate) mod killed_peer;
pub(crate) mod leaks;
pub(crate) mod removal;

/// Both sides of a connection with messages.
pub(crate) struct Pair {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
}

impl Pair {
    pub(crate) fn new(site: &Site) -> Self {
        Self::with(site, &MessageOptions::new(), &MessageOptions::new())
    }

    pub(crate) fn with(site: &Site, client: &MessageOptions, server: &MessageOptions) -> Self {
        let listener = Listener::options();
        let listener = listener.bind(site.v4(0)).unwrap();
        let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
        let pair = thread::scope(|scope| {
            let client = scope.spawn(|| connector.connect_messages(client.clone()).unwrap());
            let server = listener
                .accept(PATIENCE)
                .unwrap()
                .accept_messages(server.clone())
                .unwrap();
            Self {
                client: client.join().unwrap(),
                server,
            }
        });
        pair.client.set_deadline(PATIENCE);
        pair.server.set_deadline(PATIENCE);
        pair
    }
}

/// The close reason in the error of a pending operation.
pub(crate) fn ending(error: &rdmacm::Error) -> EventKind {
    match error.cause() {
        Cause::Closed(ending) => ending.kind(),
        other => panic!("{other:?}"),
    }
}

/// The close reason of `receive`; `None` after an orderly end.
pub(crate) fn end_of(received: rdmacm::Result<Option<Message>>) -> EventKind {
    match received {
        Ok(None) => EventKind::Disconnected,
        Ok(Some(message)) => panic!("{message:?}"),
        Err(error) => ending(&error),
    }
}

#[case]
fn ping_and_pong(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..100_u8 {
                client.send(&[number; 100]).unwrap();
                assert_eq!(*client.receive().unwrap().unwrap(), [number, 1]);
            }
        });
        for number in 0..100 {
            assert_eq!(*server.receive().unwrap().unwrap(), [number; 100]);
            server.send(&[number, 1]).unwrap();
        }
    });
    thread::scope(|scope| {
        scope.spawn(|| client.close(PATIENCE).unwrap());
        assert!(server.receive().unwrap().is_none());
        let error = server.send(b"more").unwrap_err();
        assert_eq!(error.stage(), Stage::Send);
        assert_eq!(error.device(), Some(site.device));
        assert_eq!(ending(&error), EventKind::Disconnected);
    });
}

#[case]
fn messages_of_every_length(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    for length in [0, 1, 63, 64, 65, 1023, 4095, 4096] {
        let message: Vec<u8> = (0..length).map(|at: u32| at.to_le_bytes()[0]).collect();
        client.send(&message).unwrap();
        let received = server.receive().unwrap().unwrap();
        assert_eq!(*received, message[..]);
        assert_eq!(received.immediate(), None);
    }
    client.flush().unwrap();
}

/// The side that may send first does so at once: on iWARP the connecting side, on RoCE
/// also the accepting one, before the other side knows that it is connected.
#[case]
fn the_first_message_finds_a_posted_receive(site: &Site) {
    for _ in 0..20 {
        let listener = Listener::bind(site.v4(0)).unwrap();
        let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
        thread::scope(|scope| {
            let client = scope.spawn(|| {
                let client = connector.connect().unwrap();
                client.set_deadline(PATIENCE);
                client.send(b"hello").unwrap();
                assert_eq!(*client.receive().unwrap().unwrap(), *b"welcome");
                client
            });
            let server = listener.accept(PATIENCE).unwrap().accept().unwrap();
            server.set_deadline(PATIENCE);
            if site.soft == Soft::Rxe {
                server.send(b"welcome").unwrap();
            }
            assert_eq!(*server.receive().unwrap().unwrap(), *b"hello");
            if site.soft == Soft::Siw {
                server.send(b"welcome").unwrap();
            }
            drop(client.join().unwrap());
        });
    }
}

#[case]
fn messages_sent_before_the_disconnect_arrive(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    for number in 0..20_u8 {
        client.send(&[number; 500]).unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(|| client.close(PATIENCE).unwrap());
        assert_eq!(
            server.closed(PATIENCE).unwrap().kind(),
            EventKind::Disconnected
        );
    });
    for number in 0..20 {
        assert_eq!(*server.receive().unwrap().unwrap(), [number; 500]);
    }
    for _ in 0..2 {
        assert!(server.receive().unwrap().is_none());
    }
    let error = server.send(b"anyone?").unwrap_err();
    assert_eq!(
        (error.stage(), ending(&error)),
        (Stage::Send, EventKind::Disconnected)
    );
    let buffer = server.allocate(10).unwrap();
    let failed = server.send_buffer(buffer).unwrap_err();
    assert_eq!(failed.buffer.unwrap().len(), 10);
    assert!(server.try_receive().unwrap().is_none());
    server.close(PATIENCE).unwrap();
}

#[case]
fn a_vanished_peer_ends_the_wait(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    client.send(b"last words").unwrap();
    client.flush().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            assert_eq!(*server.receive().unwrap().unwrap(), *b"last words");
            server.receive()
        });
        drop(client);
        assert!(waiting.join().unwrap().unwrap().is_none());
    });
}

/// If the peer receives nothing, its device makes this side wait (RoCE), or the
/// connection ends (iWARP).
#[case]
fn a_send_beyond_the_credits_waits(site: &Site) {
    let few = MessageOptions::new().receives(4).sends(2);
    let Pair { client, server } = Pair::with(site, &few, &few);
    if site.soft == Soft::Siw {
        // TCP buffers them, so the peer's receive requests do not limit their number.
        let error = loop {
            if let Err(error) = client.send(&[7; 200]) {
                break error;
            }
        };
        assert_eq!(ending(&error), EventKind::Disconnected, "{error}");
        for _ in 0..4 {
            assert_eq!(*server.receive().unwrap().unwrap(), [7; 200]);
        }
        assert_eq!(end_of(server.receive()), EventKind::Disconnected);
        return;
    }
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            for number in 0..20 {
                client.send(&[number; 200]).unwrap();
            }
            client.flush().unwrap();
        });
        let kept: Vec<_> = (0..4).map(|_| server.receive().unwrap().unwrap()).collect();
        server.set_deadline(SECOND / 10);
        // They occupy all send requests of this side.
        let error = server.receive().unwrap_err();
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        assert!(!sending.is_finished());
        drop(kept);
        server.set_deadline(PATIENCE);
        for number in 4..20 {
            assert_eq!(*server.receive().unwrap().unwrap(), [number; 200]);
        }
        sending.join().unwrap();
    });
    // A message that was not posted in time was not sent.
    client.set_deadline(SECOND / 10);
    let error = loop {
        if let Err(error) = client.send(b"more") {
            break error;
        }
    };
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    assert_eq!(error.stage(), Stage::Send);
}

#[case]
fn a_received_message_outlives_its_connection(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    client.send(b"keep me").unwrap();
    let kept = server.receive().unwrap().unwrap();
    let buffer = server.allocate(3).unwrap();
    let exposed = server.expose(8, AccessFlags::LOCAL_WRITE).unwrap();
    drop((client, server));
    assert_eq!(*kept, *b"keep me");
    assert_eq!(*buffer, [0; 3]);
    exposed.write(0, &[1; 8]);
}

#[case]
fn memory_is_read_and_written(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    let exposed = server.expose(10_000, access).unwrap();
    send_remote_memory(&server, exposed.remote());
    let remote = receive_remote_memory(&client);
    let mut buffer = client.allocate(10_000).unwrap();
    buffer.fill(9);
    let buffer = client.write(buffer, remote).unwrap();
    // A part of a buffer, which is returned as that part.
    let part = buffer.slice(100..200).unwrap();
    let part = client.write(part, remote.slice(..100).unwrap()).unwrap();
    let mut buffer = part.into_buffer().unwrap();
    buffer.fill(0);
    let buffer = client.read(buffer, remote).unwrap();
    assert_eq!(*buffer, [9; 10_000]);
    // A later message proves that the write has arrived.
    client.send(b"written").unwrap();
    server.receive().unwrap().unwrap();
    let mut seen = [0; 10_000];
    exposed.read(0, &mut seen);
    assert_eq!(seen, [9; 10_000]);
    // A write beyond the peer's memory is refused without effect.
    let longer = client.allocate(10_001).unwrap();
    let failed = client.read(longer, remote).unwrap_err();
    assert_eq!(failed.error.stage(), Stage::Read);
    assert!(matches!(failed.error.cause(), Cause::Device { .. }));
    assert_eq!(failed.buffer.unwrap().len(), 10_001);
    client.send_buffer(buffer.slice(0..7).unwrap()).unwrap();
    assert_eq!(*server.receive().unwrap().unwrap(), [9; 7]);
}

pub(crate) fn send_remote_memory(connection: &Connection, memory: RemoteMemory) {
    connection.send(&memory.to_bytes()).unwrap();
}

pub(crate) fn receive_remote_memory(connection: &Connection) -> RemoteMemory {
    let message = connection.receive().unwrap().unwrap();
    RemoteMemory::from_bytes(&message).unwrap()
}

#[case]
fn forbidden_remote_access_ends_the_connection(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let exposed = server.expose(64, access).unwrap();
    let remote = exposed.remote();
    drop(exposed);
    let buffer = client.allocate(64).unwrap();
    let failed = thread::scope(|scope| {
        let serving = scope.spawn(|| server.receive());
        let failed = client.read(buffer, remote).unwrap_err();
        assert_eq!(failed.error.stage(), Stage::Read);
        assert!(failed.error.is_closed(), "{}", failed.error);
        let ended = client.closed(PATIENCE).unwrap();
        assert_eq!(ended.kind(), EventKind::Disconnected);
        assert_eq!(ended.failed_request(), failed.error.failed_request());
        match serving.join().unwrap() {
            Ok(message) => assert!(message.is_none()),
            Err(error) => assert!(error.is_closed(), "{error}"),
        }
        failed
    });
    assert_eq!(failed.buffer.unwrap().len(), 64);
    match failed.error.cause() {
        Cause::Request(error) => {
            let status = [
                WcStatus::REM_ACCESS_ERR,
                WcStatus::REM_OP_ERR,
                WcStatus::REM_INV_REQ_ERR,
                WcStatus::LOC_PROT_ERR,
            ];
            assert!(status.contains(&error.status), "{error}");
        }
        // iWARP may report only that the connection ended.
        Cause::Closed(_) if site.soft == Soft::Siw => {}
        other => panic!("{other:?}"),
    }
}

/// The other side does not wait, so its node does not answer the disconnect.
#[case]
fn forbidden_remote_access_ends_an_idle_connection(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let exposed = server.expose(64, AccessFlags::LOCAL_WRITE).unwrap();
    let remote = exposed.remote();
    drop(exposed);
    let failed = client.read(client.allocate(64).unwrap(), remote);
    let error = failed.unwrap_err().error;
    assert!(error.is_closed(), "{error}");
    let ended = client.closed(PATIENCE).unwrap();
    assert_eq!(ended.kind(), EventKind::Disconnected);
    let kind = std::io::Error::from(error).kind();
    assert_eq!(kind, std::io::ErrorKind::ConnectionReset);
    assert!(server.closed(PATIENCE).is_ok());
}

#[case]
fn a_message_too_long_for_the_peer_ends_the_connection(site: &Site) {
    let short = MessageOptions::new().size(16);
    let Pair { client, server } = Pair::with(site, &MessageOptions::new(), &short);
    client.send(&[1; 16]).unwrap();
    client.send(&[1; 17]).unwrap();
    assert_eq!(server.receive().unwrap().unwrap().len(), 16);
    let error = server.receive().unwrap_err();
    assert!(error.is_closed(), "{error}");
    match client.receive() {
        Ok(message) => assert!(message.is_none()),
        Err(lost) => assert!(lost.is_closed(), "{lost}"),
    }
}

#[case]
fn a_message_too_long_to_copy_is_refused(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let error = client.send(&[0; 4097]).unwrap_err();
    assert!(
        matches!(error.cause(), Cause::MessageTooLong(4097)),
        "{error}"
    );
    let words = error.to_string();
    assert!(words.starts_with("send to 10.71."), "{words}");
    assert!(
        words.contains("a message of 4097 bytes is longer"),
        "{words}"
    );
    client.send(b"short").unwrap();
    assert_eq!(*server.receive().unwrap().unwrap(), *b"short");
}

#[case]
fn sending_and_receiving_at_once(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    // At most as many as the peer has receive requests: iWARP has no flow control.
    let pass = |connection: &Connection| {
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..30_u8 {
                    connection.send(&[number; 1000]).unwrap();
                }
            });
            for number in 0..30 {
                assert_eq!(*connection.receive().unwrap().unwrap(), [number; 1000]);
            }
        });
    };
    thread::scope(|scope| {
        scope.spawn(|| pass(&client));
        pass(&server);
    });
}

#[case]
fn a_receive_times_out(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    client.set_deadline(SECOND / 10);
    let error = client.receive().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.stage(), Stage::Receive);
    assert!(client.try_receive().unwrap().is_none());
    server.send(b"late").unwrap();
    client.set_deadline(PATIENCE);
    assert_eq!(*client.receive().unwrap().unwrap(), *b"late");
}

#[case]
fn a_capacity_of_zero_is_refused(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    let none = MessageOptions::new().receives(0);
    let error = connector.connect_messages(none.clone()).unwrap_err();
    assert_eq!(error.stage(), Stage::QueuePair);
    assert!(error.to_string().contains("no receive requests"), "{error}");
}

/// In a process of its own, whose limit is changed.
#[case]
fn a_capacity_beyond_the_limit_is_refused(site: &Site) {
    child::run_at("messages_beyond_the_limit", site);
}

pub(crate) fn beyond_the_limit() {
    const LIMIT: u64 = 1 << 20;
    let site = child::site();
    setrlimit(Resource::RLIMIT_MEMLOCK, LIMIT, LIMIT).unwrap();
    // The limit does not apply to privileged processes.
    setuid(child::NOBODY).unwrap();
    let listener = Listener::bind(site.v4(0)).unwrap();
    for _ in 0..3 {
        let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
        let much = MessageOptions::new().size(1 << 16);
        let error = connector.connect_messages(much.clone()).unwrap_err();
        assert_eq!(error.stage(), Stage::QueuePair);
        let words = error.to_string();
        assert!(words.contains("the limit of locked memory"), "{words}");
    }
    // Memory within the limit can be registered.
    let little = MessageOptions::new().size(128);
    let Pair { client, server } = Pair::with(&site, &little, &little);
    client.send(&[7; 100]).unwrap();
    assert_eq!(*server.receive().unwrap().unwrap(), [7; 100]);
}

#[case]
fn a_migrated_connection_continues(site: &Site) {
    let Pair { mut client, server } = Pair::new(site);
    let node = rdmacm::Node::open().unwrap();
    client.migrate(&node).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let message = client.receive().unwrap().unwrap().to_vec();
            (message, client.receive())
        });
        server.send(b"moved?").unwrap();
        server.close(PATIENCE).unwrap();
        let (message, end) = waiting.join().unwrap();
        assert_eq!(message, b"moved?");
        assert!(end.unwrap().is_none());
    });
}
