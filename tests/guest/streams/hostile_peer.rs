//! Peers in both roles that violate the protocol: each ends its own stream with an error.

use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::Instant;

use rdmacm::{Cause, Connector, Listener, Node, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_rsocket::{Announcement, ByteOrder, Control, Message, ProtocolError};
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;
use rdmacm_verbs::{RemoteMemory, SendOperation, SendRequest};

use super::scripted_peer::{CREDITS, OTHER_ORDER, Peer, RECEIVES, Role, word};
use super::{Pair, accept, bytes, carry, fill};

/// A hostile peer, and the stream to it.
fn connected(site: &Site, role: Role) -> (Peer, RdmaStream) {
    role.connect(site, &StreamOptions::new(), |_| ())
}

/// The violation that ends a stream, after what was read before.
fn violation(stream: &RdmaStream) -> ProtocolError {
    read_to_violation(stream).1
}

/// How many bytes are read before the violation that ends a stream. If the peer has shut it down,
/// reads find its end until the violation arrives.
fn read_to_violation(stream: &RdmaStream) -> (usize, ProtocolError) {
    let until = Instant::now() + PATIENCE;
    let mut bytes = 0;
    let error = loop {
        assert!(Instant::now() < until, "no violation");
        // A read handles messages until it has as many bytes as it wants.
        match { stream }.read(&mut [0; 1000]) {
            Ok(read) => bytes += read,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    let error = error.into_inner().unwrap();
    let error = error.downcast_ref::<rdmacm::Error>().unwrap();
    match error.cause() {
        Cause::Protocol(error) => (bytes, *error),
        cause => panic!("{cause:?}"),
    }
}

#[case]
fn messages_against_the_protocol_end_the_stream(site: &Site) {
    let node = Node::open().unwrap();
    let Pair { client, server } = Pair::on(site, &node);
    let data = |length| word(Message::Data(length));
    let beyond = |length, left| ProtocolError::BeyondAnnouncement { length, left };
    let (index, entries) = (3, 0);
    for role in Role::BOTH {
        for (sent, expected) in [
            (vec![data(0)], ProtocolError::EmptyData),
            (vec![data(65_537)], beyond(65_537, 65_536)),
            (vec![1 << 29], ProtocolError::ReservedOperation(1)),
            (
                vec![word(Message::Map(3))],
                ProtocolError::MapEntry { index, entries },
            ),
            (
                vec![word(Message::Control(Control::Shutdown)), data(1)],
                ProtocolError::AfterShutdown,
            ),
        ] {
            let (peer, stream) = role.connect_on(site, &node, &StreamOptions::new(), |_| ());
            for word in sent {
                peer.send(word);
            }
            assert_eq!(read_to_violation(&stream), (0, expected));
            // Another stream of the same node goes on.
            carry(&client, &server, &[7; 1000]);
            drop(peer.memory);
        }
    }
}

/// It announces memory in this side's order, and reads announcements in its own.
#[case]
fn a_peer_of_the_other_byte_order_is_understood(site: &Site) {
    for role in Role::BOTH {
        let (peer, stream) =
            role.connect(site, &StreamOptions::new(), |handshake| handshake[1] ^= 1);
        thread::scope(|scope| {
            // Waits until the announcement has come: on siw a stream wakes up its peer only then.
            scope.spawn(|| (&stream).read_exact(&mut [0; 6]).unwrap());
            peer.write(0, b"hello", word(Message::Data(5)));
            assert!(matches!(peer.next_message(), Message::Credits(_)));
            peer.write(5, b"!", word(Message::Data(1)));
        });
        let mut entry = [0; 16];
        peer.memory.read(16, &mut entry);
        let first = peer.handshake.announcement;
        let second = Announcement {
            address: first.address + u64::from(first.length),
            ..first
        };
        assert_eq!(Announcement::from_bytes(entry, OTHER_ORDER), second);

        // All of the memory in the handshake, then some that is announced later.
        let sent = bytes(1500);
        (&stream).write_all(&sent[..1024]).unwrap();
        assert_eq!(peer.next_message(), Message::Data(1024));
        let remote = peer.memory.remote();
        let announcement = Announcement {
            address: remote.address() + 2048,
            key: remote.key(),
            length: 1024,
        };
        let table = peer.handshake.table;
        let entry = RemoteMemory::new(table.address + 16, 16, table.key).unwrap();
        let announced = announcement.to_bytes(ByteOrder::NATIVE);
        peer.announce(entry, &announced, word(Message::Credits(CREDITS + 1)));
        (&stream).write_all(&sent[1024..]).unwrap();
        assert_eq!(peer.next_message(), Message::Data(476));
        let mut received = vec![0; 1500];
        peer.memory.read(1024, &mut received);
        assert!(received == sent);
    }
}

/// Otherwise a peer may wait for the acknowledgement of the message that it closes with: rxe
/// delivers a message before it acknowledges it.
#[case(needs(AcknowledgedSends))]
fn a_dropped_stream_is_there_until_its_peer_has_disconnected(site: &Site) {
    for role in Role::BOTH {
        let (peer, mut stream) = connected(site, role);
        peer.send(word(Message::Control(Control::Disconnect)));
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        drop(stream);
        peer.post(SendRequest::inline(
            SendOperation::Write(RemoteMemory::NONE),
            &[],
        ));
        for _ in 0..2 {
            let sent = peer.connection.next_sent(PATIENCE).unwrap();
            sent.result().unwrap();
        }
    }
}

/// Two messages are never answered.
#[case]
fn unknown_controls_are_ignored(site: &Site) {
    for role in Role::BOTH {
        let (peer, stream) = connected(site, role);
        for word in [0xE000_0001, 0xE000_0063, 0x4000_0000] {
            peer.send(word);
        }
        peer.write(0, b"hello", word(Message::Data(5)));
        let mut read = [0; 5];
        (&stream).read_exact(&mut read).unwrap();
        assert_eq!(read, *b"hello");
        peer.send(word(Message::Control(Control::Disconnect)));
        assert_eq!((&stream).read(&mut read).unwrap(), 0);
    }
}

/// The stream handles messages only after the last of them has arrived.
#[case(needs(AcknowledgedSends))]
fn messages_beyond_the_credits_end_the_stream(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    for role in Role::BOTH {
        let (peer, stream) = connected(site, role);
        let beyond = peer.handshake.credits + 1;
        for _ in 0..beyond {
            peer.send(word(Message::Data(1)));
        }
        for _ in 0..beyond {
            let sent = peer.connection.next_sent(PATIENCE).unwrap();
            sent.result().unwrap();
        }
        assert_eq!(violation(&stream), ProtocolError::NoCredit);
        carry(&client, &server, &[7; 1000]);
    }
}

/// The stream would send to a peer without receive requests.
#[case]
fn credits_that_the_peer_cannot_have_end_the_stream(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let limits = [CREDITS + 1, u16::MAX];
    for (role, limit) in Role::BOTH
        .into_iter()
        .flat_map(|role| limits.map(|limit| (role, limit)))
    {
        let (peer, stream) = connected(site, role);
        peer.send(word(Message::Credits(limit)));
        assert_eq!(
            violation(&stream),
            ProtocolError::TooManyCredits,
            "{role:?}: {limit}"
        );
        carry(&client, &server, &[7; 1000]);
    }
}

/// The bytes would be missing from the stream.
#[case(needs(AcknowledgedSends))]
fn credits_that_are_taken_back_fail_what_was_reserved(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    for role in Role::BOTH {
        let (peer, mut stream) = connected(site, role);
        let slot = stream.reserve(10).unwrap();
        peer.send(word(Message::Credits(0)));
        let sent = peer.connection.next_sent(PATIENCE).unwrap();
        sent.result().unwrap();
        let error = slot.commit(10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        assert_eq!(violation(&stream), ProtocolError::FewerCredits);
        carry(&client, &server, &[7; 1000]);
    }
}

/// Messages that nobody handles are kept in memory, but not without end.
#[case(needs(AcknowledgedSends))]
fn messages_beyond_the_credits_end_one_of_the_streams_that_share_receives(site: &Site) {
    const MESSAGES: usize = 200;
    let listener = Listener::bind(site.v4(0)).unwrap();
    let options = StreamOptions::new().receives(16).shared_receives(128);
    let listener = RdmaListener::new(listener, options.clone());
    let address = site.v4(listener.local_addr().unwrap().port());
    let (peer, stream, Pair { client, server }) = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let connector = Connector::new(address).deadline(PATIENCE);
            connector.connect_stream(options.clone()).unwrap()
        });
        let (server, _) = accept(&listener);
        let client = client.join().unwrap();
        let (peer, stream) = Peer::connect_by(site, &listener, |_| ());
        (peer, stream, Pair { client, server })
    });
    for _ in 0..MESSAGES {
        peer.send(word(Message::Credits(CREDITS)));
    }
    let until = Instant::now() + PATIENCE;
    // The other stream takes them from the device.
    while stream.take_error().unwrap().is_none() {
        carry(&client, &server, &bytes(10_000));
        assert!(Instant::now() < until, "no violation");
    }
    assert_eq!(violation(&stream), ProtocolError::NoCredit);
    carry(&client, &server, &bytes(10_000));
    drop(peer.memory);
}

/// The device refuses it.
#[case]
fn a_write_beyond_the_memory_resets_the_stream(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    for role in Role::BOTH {
        let (peer, stream) = connected(site, role);
        peer.write(1 << 30, b"x", word(Message::Data(1)));
        let error = (&stream).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        carry(&client, &server, &[7; 1000]);
    }
}

/// Over bytes that were not read, and into memory that was not announced yet: both are the stream's
/// own.
#[case]
fn writes_beside_the_announced_memory_touch_no_other_stream(site: &Site) {
    const ANNOUNCED: u64 = 65_536;
    let Pair { client, server } = Pair::new(site);
    for role in Role::BOTH {
        let (peer, stream) = connected(site, role);
        let nothing_new = word(Message::Credits(CREDITS));
        peer.write(0, b"hello", word(Message::Data(5)));
        peer.write(0, b"HELLO", nothing_new);
        peer.write(ANNOUNCED + 100, b"not yet", nothing_new);
        peer.write(5, b"on", word(Message::Data(2)));
        let mut read = [0; 7];
        (&stream).read_exact(&mut read).unwrap();
        read.make_ascii_lowercase();
        assert_eq!(read, *b"helloon");
        carry(&client, &server, &[7; 1000]);
    }
}

/// While it waits for a message, which will not come.
#[case]
fn a_reader_learns_that_its_write_was_refused(site: &Site) {
    let with_shared = StreamOptions::new().shared_receives(500);
    for (role, options) in [
        (Role::Accepted, StreamOptions::new()),
        (Role::Accepted, with_shared.clone()),
        (Role::Connected, StreamOptions::new()),
        (Role::Connected, with_shared),
    ] {
        let (peer, stream) = role.connect(site, &options, |_| ());
        // On iWARP the side that has connected sends first.
        peer.send(word(Message::Credits(CREDITS)));
        let Peer {
            memory, connection, ..
        } = peer;
        drop(memory);
        // An announcement may have been refused before.
        let written = (&stream).write_all(b"x").err();
        let read = (&stream).read(&mut [0]).unwrap_err();
        for error in written.into_iter().chain([read]) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        drop(connection);
    }
}

/// It has fewer receive requests than it gives credits, as a peer may have that is stopped. What
/// is in flight when a close gives up arrives if the peer goes on soon.
#[case(needs(AcknowledgedSends), waiting)]
fn a_close_reports_what_was_not_acknowledged_in_time(site: &Site) {
    const GIVEN: u16 = 256;
    let with_more = |handshake: &mut Vec<u8>| handshake[2..4].copy_from_slice(&GIVEN.to_be_bytes());
    let options = StreamOptions::new().linger(PATIENCE);
    for role in Role::BOTH {
        let (peer, stream) = role.connect(site, &options, with_more);
        let written = fill(&stream, || vec![7, 7]);
        let start = Instant::now();
        let error = stream.close(SECOND).unwrap_err();
        assert!(start.elapsed() >= SECOND);
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        let error = error.into_inner().unwrap();
        let error = error.downcast_ref::<rdmacm::Error>().unwrap();
        // The first request has taken credits.
        let taken = 2 * (u64::from(RECEIVES) - 1);
        let left = written as u64 - taken;
        assert!(
            matches!(error.cause(), Cause::NotAcknowledged(bytes) if *bytes == left),
            "{error}"
        );
        assert!(matches!(peer.next_message(), Message::Credits(_)));
        // As many as the queue takes: a device that finds none waits each time.
        let mut posted = RECEIVES - 1;
        for _ in 0..written / 2 {
            assert_eq!(peer.next_message(), Message::Data(2));
            posted -= 1;
            if posted == 0 {
                peer.post_receives(RECEIVES);
                posted = RECEIVES;
            }
        }
        assert_eq!(peer.next_message(), Message::Control(Control::Disconnect));
    }
}
