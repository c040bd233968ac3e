//! Handshakes of peers in both roles: each leads to an error that names its fault, or to a stream
//! that works.

use std::io::{ErrorKind, Read as _, Write as _};
use std::thread;

use rdmacm::{Cause, Connector, Listener, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_rsocket::{Announcement, ByteOrder, HandshakeError, MapEntry, Message};
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft, free_port};
use rdmacm_tests_macros::case;

use super::rstream::Test;
use super::scripted_peer::{ANNOUNCED, CREDITS, OTHER_ORDER, Peer, Role, TABLE, word};
use super::{Pair, accept, carry, to_c_server};
use crate::c_tools::tool::Tool;
use crate::rdma_core::RdmaCore;

/// How a handshake differs from the usual one: other bytes at some places, and another length.
#[derive(Clone, Copy, Debug)]
struct Change {
    bytes: &'static [(usize, &'static [u8])],
    length: usize,
}

impl Change {
    const fn bytes(bytes: &'static [(usize, &'static [u8])]) -> Self {
        Self { bytes, length: 40 }
    }

    const fn length(length: usize) -> Self {
        let bytes = &[];
        Self { bytes, length }
    }

    fn apply(self, handshake: &mut Vec<u8>) {
        for (start, bytes) in self.bytes {
            handshake[*start..][..bytes.len()].copy_from_slice(bytes);
        }
        handshake.resize(self.length, 0xee);
    }
}

/// Those that no stream can work with, and the fault that this side names.
fn faults(site: &Site) -> Vec<(Change, HandshakeError)> {
    let mut faults = vec![
        (Change::bytes(&[(0, &[0])]), HandshakeError::Version(0)),
        (Change::bytes(&[(0, &[2])]), HandshakeError::Version(2)),
        (
            Change::bytes(&[(20, &[0; 4])]),
            HandshakeError::TableEntries(0),
        ),
        (
            Change::bytes(&[(23, &[1])]),
            HandshakeError::TableEntries(1),
        ),
        (
            Change::bytes(&[(8, &[0xff; 8])]),
            HandshakeError::AddressSpace,
        ),
        (
            Change::bytes(&[(24, &[0xff; 8])]),
            HandshakeError::AddressSpace,
        ),
        (Change::length(0), HandshakeError::Version(0)),
    ];
    // RoCE fills up private data with zeros.
    if site.soft == Soft::Siw {
        faults.push((Change::length(39), HandshakeError::Length(39)));
    }
    faults
}

#[case]
fn a_client_without_a_valid_handshake_is_rejected(site: &Site) {
    let listener = RdmaListener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let Pair { client, server } = Pair::by(&listener, &StreamOptions::new());
    thread::scope(|scope| {
        let accepting = scope.spawn(|| accept(&listener));
        for (change, _) in faults(site) {
            let refused = Peer::connect(site, port, |handshake| change.apply(handshake));
            let error = refused.err().unwrap();
            assert!(error.is_rejected(), "{change:?}: {error}");
            carry(&client, &server, &[7; 1000]);
        }
        let valid = Peer::connect(site, port, |_| ()).unwrap();
        accepting.join().unwrap();
        drop(valid);
    });
}

#[case]
fn a_server_without_a_valid_handshake_is_an_error(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let listener = Listener::bind(site.v4(0)).unwrap();
    for (change, fault) in faults(site) {
        let (refused, peer) = thread::scope(|scope| {
            let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
            let connecting = scope.spawn(|| connector.connect_stream(StreamOptions::new()));
            let incoming = listener.accept(PATIENCE).unwrap();
            let peer = Peer::accept(site, incoming, |handshake| change.apply(handshake));
            (connecting.join().unwrap(), peer.unwrap())
        });
        let error = refused.unwrap_err();
        match error.cause() {
            Cause::Handshake(named) => assert_eq!(*named, fault, "{change:?}"),
            cause => panic!("{change:?}: {cause:?}"),
        }
        let error = std::io::Error::from(error);
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{change:?}: {error}");
        peer.connection.closed(PATIENCE).unwrap();
        carry(&client, &server, &[7; 1000]);
    }
}

/// A valid handshake, and what it means.
#[derive(Clone, Copy, Debug)]
struct Valid {
    change: Change,
    order: ByteOrder,
    credits: u16,
    /// The entries of the peer's table of announcements.
    entries: u8,
    /// How many regions can be mapped, of two.
    regions: u16,
}

const NATIVE_FLAGS: u8 = flags(ByteOrder::NATIVE);

/// Those of a handshake that states map entries.
const fn flags(order: ByteOrder) -> u8 {
    match order {
        ByteOrder::Little => 2,
        ByteOrder::Big => 3,
    }
}

const USUAL: Valid = Valid {
    change: Change::bytes(&[]),
    order: ByteOrder::NATIVE,
    credits: CREDITS,
    entries: 2,
    regions: 0,
};

const fn reserved(bytes: &'static [(usize, &'static [u8])]) -> Valid {
    Valid {
        change: Change::bytes(bytes),
        ..USUAL
    }
}

const fn with_entries(bytes: &'static [(usize, &'static [u8])], entries: u8) -> Valid {
    Valid {
        entries,
        ..reserved(bytes)
    }
}

const fn with_credits(bytes: &'static [(usize, &'static [u8])], credits: u16) -> Valid {
    Valid {
        credits,
        ..reserved(bytes)
    }
}

const fn with_regions(bytes: &'static [(usize, &'static [u8])], regions: u16) -> Valid {
    Valid {
        regions,
        ..reserved(bytes)
    }
}

const VALID: [Valid; 15] = [
    USUAL,
    Valid {
        change: Change::length(56),
        ..USUAL
    },
    Valid {
        order: OTHER_ORDER,
        ..reserved(&[(1, &[flags(OTHER_ORDER)])])
    },
    reserved(&[(1, &[NATIVE_FLAGS | 0xfc])]),
    reserved(&[(4, &[0xff; 3])]),
    // 1, 128, 256 and 32512 map entries, and a number that does not count.
    with_regions(&[(7, &[1])], 1),
    with_regions(&[(7, &[128])], 2),
    with_regions(&[(7, &[129])], 2),
    with_regions(&[(7, &[255])], 2),
    with_regions(&[(1, &[NATIVE_FLAGS & 1]), (7, &[255])], 0),
    with_entries(&[(20, &[0, 0, 0, 7])], 7),
    Valid {
        regions: 2,
        ..with_entries(&[(7, &[2]), (20, &[0, 0, 0, 7])], 7)
    },
    with_credits(&[(2, &[0, 1])], 1),
    with_credits(&[(2, &[0xff, 0xfe])], 0xfffe),
    with_credits(&[(2, &[0xff, 0xff])], 0xffff),
];

/// Half of the stream's receive buffer.
const HALF: u8 = 32;

fn options() -> StreamOptions {
    StreamOptions::new().receive_buffer(2 * u32::from(HALF))
}

/// A scripted peer, the stream to it, and what its handshake means.
struct Exchange {
    peer: Peer,
    stream: RdmaStream,
    role: Role,
    valid: Valid,
}

impl Exchange {
    fn new(site: &Site, role: Role, valid: Valid) -> Self {
        let change = move |handshake: &mut Vec<u8>| valid.change.apply(handshake);
        let (peer, stream) = role.connect(site, &options(), change);
        Self {
            peer,
            stream,
            role,
            valid,
        }
    }

    /// The stream reads more than its buffer holds. Each half is announced in the entry whose turn
    /// it is.
    fn receive(&self) {
        let turns = self.valid.entries + 2;
        let half = |turn: u8| (0..HALF).map(move |at| at * 7 + turn);
        thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let mut received = vec![0; usize::from(turns) * usize::from(HALF)];
                (&self.stream).read_exact(&mut received).unwrap();
                received
            });
            // On iWARP the side that has connected sends first.
            let has_connected = self.role == Role::Connected;
            if has_connected {
                self.expect_announcement(1);
            }
            let first = u8::from(has_connected);
            for turn in 0..turns {
                // The others have come.
                if turn > first {
                    self.expect_announcement(turn);
                }
                let place = u64::from(turn % 2 * HALF);
                let bytes: Vec<_> = half(turn).collect();
                self.peer
                    .write(place, &bytes, word(Message::Data(HALF.into())));
            }
            self.expect_announcement(turns);
            self.expect_announcement(turns + 1);
            let sent: Vec<_> = (0..turns).flat_map(half).collect();
            assert_eq!(reading.join().unwrap(), sent, "{:?}", self.valid);
        });
    }

    fn expect_announcement(&self, number: u8) {
        let message = self.peer.next_message();
        assert!(matches!(message, Message::Credits(_)), "{message:?}");
        let place = TABLE + 16 * usize::from(number % self.valid.entries);
        let entry = self.peer.memory_at(place, 16);
        let announced = Announcement::from_bytes(entry.try_into().unwrap(), self.valid.order);
        let first = self.peer.handshake.announcement;
        let address = first.address + u64::from(number % 2 * HALF);
        let expected = Announcement { address, ..first };
        assert_eq!(announced, expected, "{number}: {:?}", self.valid);
        self.peer.memory.write(place, &[0; 16]);
    }

    /// The stream maps as many regions as the peer has entries for.
    fn map(&self) {
        let maps_start = TABLE + 16 * usize::from(self.valid.entries);
        for index in 0..self.valid.regions {
            let region = self.stream.map(64, 1000).unwrap();
            assert_eq!(self.peer.next_message(), Message::Map(index.into()));
            let entry = self
                .peer
                .memory_at(maps_start + 24 * usize::from(index), 24);
            let entry = MapEntry::from_bytes(entry.try_into().unwrap(), self.valid.order);
            let (address, key) = (region.remote().address(), region.remote().key());
            let (offset, length) = (1000, 64);
            let expected = MapEntry {
                offset,
                address,
                key,
                length,
            };
            assert_eq!(entry, expected, "{:?}", self.valid);
        }
        if self.valid.regions < 2 {
            let error = self.stream.map(64, 1000).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
    }

    /// The stream writes messages. Where its credits are used up, it is given one at a time.
    fn send(&self) {
        for turn in 0..20_u8 {
            let messages = self.valid.regions + u16::from(turn) + 1;
            if messages > self.valid.credits {
                self.peer.send(word(Message::Credits(messages)));
            }
            let sent = [turn; 8];
            (&self.stream).write_all(&sent).unwrap();
            assert_eq!(self.peer.next_message(), Message::Data(8));
            let written = self.peer.memory_at(ANNOUNCED + 8 * usize::from(turn), 8);
            assert_eq!(written, sent, "{:?}", self.valid);
        }
    }

    fn run(&self) {
        self.receive();
        self.map();
        self.send();
    }
}

/// All valid handshakes; RoCE fills up a shorter one with zeros.
fn each_valid(site: &Site) -> impl Iterator<Item = Valid> {
    let short = Valid {
        change: Change::length(39),
        ..USUAL
    };
    let short = (site.soft == Soft::Rxe).then_some(short);
    VALID.into_iter().chain(short)
}

#[case]
fn peers_of_any_valid_handshake_get_a_stream(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    for role in Role::BOTH {
        for valid in each_valid(site) {
            Exchange::new(site, role, valid).run();
            carry(&client, &server, &[7; 1000]);
        }
    }
}

/// It is read, and what it gives later is more than it had.
#[case]
fn a_peer_without_credits_is_not_written_to(site: &Site) {
    let without = with_credits(&[(2, &[0, 0])], 0);
    for role in Role::BOTH {
        let exchange = Exchange::new(site, role, without);
        exchange.receive();
        let mut stream = &exchange.stream;
        stream.set_write_timeout(Some(SECOND / 10)).unwrap();
        let error = stream.write(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        exchange.peer.send(word(Message::Credits(1)));
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        let error = stream.write(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
}

/// librdmacm rejects a client, and gives up on a server.
#[case]
fn librdmacm_refuses_another_version(site: &Site) {
    let another = |handshake: &mut Vec<u8>| handshake[0] = 2;
    let test = Test::new(64, 2, 2);
    for rdma_core in RdmaCore::compared() {
        let (server, stream) = to_c_server(site, site.v4.into(), &StreamOptions::new(), |port| {
            let mut server = test.start(*rdma_core, port, &["-b", &site.v4.to_string()]);
            server.wait_for("name");
            let error = Peer::connect(site, port, another).err().unwrap();
            assert!(error.is_rejected(), "{error}");
            server
        });
        test.run(&stream, true);
        drop(stream);
        Test::check(&server.finish());

        let listener = Listener::bind(site.v4(0)).unwrap();
        let client = client_of(site, *rdma_core, listener.local_addr().port());
        let incoming = listener.accept(PATIENCE).unwrap();
        let peer = Peer::accept(site, incoming, another).unwrap();
        client.finish().assert_contains("Operation not supported");
        peer.connection.closed(PATIENCE).unwrap();
    }
}

#[case]
fn librdmacm_is_refused(site: &Site) {
    for rdma_core in RdmaCore::compared() {
        let client = client_of(site, *rdma_core, free_port());
        client.finish().assert_contains("Connection refused");
        let listener = Listener::bind(site.v4(0)).unwrap();
        let client = client_of(site, *rdma_core, listener.local_addr().port());
        listener.accept(PATIENCE).unwrap().reject(b"no").unwrap();
        client.finish().assert_contains("Connection refused");
    }
}

fn client_of(site: &Site, rdma_core: RdmaCore, port: u16) -> Tool {
    Test::new(64, 2, 2).start(rdma_core, port, &["-s", &site.v4.to_string()])
}
