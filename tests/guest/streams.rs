//! Byte streams.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rdmacm::{Connector, Listener, Node, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_core::ConnParam;
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft, free_port, free_qp_number};
use rdmacm_tests_macros::case;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::c_tools::tool::Tool;
use crate::connector::asynchronous::on_one_thread;
use crate::packet_delay::hold_back_first_messages;

pub(crate) mod addresses;
pub(crate) mod ends;
pub(crate) mod handshakes;
pub(crate) mod hostile_peer;
pub(crate) mod in_place;
pub(crate) mod inline;
pub(crate) mod killed_peer;
pub(crate) mod long_run;
pub(crate) mod lost_rstream;
pub(crate) mod mapped_memory;
pub(crate) mod measured;
pub(crate) mod nonblocking;
pub(crate) mod nonblocking_listener;
pub(crate) mod other_runtime;
pub(crate) mod preload;
pub(crate) mod rcopy;
pub(crate) mod refused_writes;
pub(crate) mod riostream;
pub(crate) mod rsocket_calls;
pub(crate) mod rstream;
mod scripted_peer;
pub(crate) mod send_slots;
pub(crate) mod shared_receives;
pub(crate) mod storm;
pub(crate) mod tasks;
pub(crate) mod threads;
pub(crate) mod two_directions;

/// Both sides of a stream.
pub(crate) struct Pair {
    pub(crate) client: RdmaStream,
    pub(crate) server: RdmaStream,
}

impl Pair {
    pub(crate) fn new(site: &Site) -> Self {
        Self::with(site, &StreamOptions::new(), &StreamOptions::new())
    }

    pub(crate) fn with(site: &Site, client: &StreamOptions, server: &StreamOptions) -> Self {
        let listener = Listener::bind(site.v4(0)).unwrap();
        Self::by(&RdmaListener::new(listener, server.clone()), client)
    }

    /// A pair of which both sides are of one node.
    pub(crate) fn on(site: &Site, node: &Node) -> Self {
        let listener = Listener::options().with_node(node).bind(site.v4(0));
        let listener = RdmaListener::new(listener.unwrap(), StreamOptions::new());
        let connector = Connector::new(listener.local_addr().unwrap()).with_node(node);
        Self::connect(&listener, connector, &StreamOptions::new())
    }

    /// A pair by a listener that is bound to an address.
    pub(crate) fn by(listener: &RdmaListener, client: &StreamOptions) -> Self {
        let connector = Connector::new(listener.local_addr().unwrap());
        Self::connect(listener, connector, client)
    }

    fn connect(listener: &RdmaListener, connector: Connector, client: &StreamOptions) -> Self {
        let connector = connector.deadline(PATIENCE);
        let pair = thread::scope(|scope| {
            let client = scope.spawn(|| connector.connect_stream(client.clone()).unwrap());
            let (server, _) = accept(listener);
            Self {
                client: client.join().unwrap(),
                server,
            }
        });
        pair.be_patient();
        pair
    }

    pub(crate) fn be_patient(&self) {
        for stream in [&self.client, &self.server] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
        }
    }
}

/// Accepts a peer, which may have failed and never come.
pub(crate) fn accept(listener: &RdmaListener) -> (RdmaStream, SocketAddr) {
    let (accepted, is_accepted) = channel::<()>();
    let stop = listener.stop_handle();
    let limit = thread::spawn(move || {
        if is_accepted.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            stop.stop();
        }
    });
    let peer = listener.accept();
    drop(accepted);
    limit.join().unwrap();
    peer.unwrap()
}

/// A listener on this host for clients of librdmacm, and its port.
fn for_c_clients(
    site: &Site,
    host: impl Into<IpAddr>,
    options: StreamOptions,
) -> (RdmaListener, u16) {
    let port = free_port();
    hold_back_first_messages(site, &port.to_string());
    let listener = Listener::bind((host.into(), port)).unwrap();
    (RdmaListener::new(listener, options), port)
}

/// A server of librdmacm on a port of this host, and a stream to it. It is started by a function
/// that waits until it listens.
///
/// On siw such a server sometimes closes a connection instead of accepting it, and then waits for
/// bytes of it for ever: a new one is started.
pub(crate) fn to_c_server(
    site: &Site,
    host: IpAddr,
    options: &StreamOptions,
    start: impl Fn(u16) -> Tool,
) -> (Tool, RdmaStream) {
    let mut closed = 0;
    loop {
        let port = free_port();
        hold_back_first_messages(site, &port.to_string());
        let server = start(port);
        let connector = Connector::new((host, port)).deadline(PATIENCE);
        match connector.connect_stream(options.clone()) {
            Err(error) if site.soft == Soft::Siw && closed < 3 => {
                assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{error}");
                closed += 1;
            }
            connected => break (server, connected.unwrap()),
        }
    }
}

/// Bytes that differ from place to place.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    let byte = |at: usize| (at ^ (at >> 8) ^ (at >> 16)).to_le_bytes()[0];
    (0..length).map(byte).collect()
}

/// Sends the bytes from one side to the other, and compares them.
pub(crate) fn carry(from: &RdmaStream, to: &RdmaStream, bytes: &[u8]) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut from = from;
            from.write_all(bytes).unwrap();
        });
        let mut to = to;
        let mut received = vec![0; bytes.len()];
        to.read_exact(&mut received).unwrap();
        assert!(received == bytes, "{} bytes differ", bytes.len());
    });
}

/// Writes messages until the stream waits for its peer, which reads nothing. Returns how many
/// bytes.
pub(crate) fn fill(mut stream: &RdmaStream, mut next: impl FnMut() -> Vec<u8>) -> usize {
    let patience = stream.write_timeout();
    stream.set_write_timeout(Some(SECOND / 4)).unwrap();
    let mut written = 0;
    let error = loop {
        match stream.write(&next()) {
            Ok(bytes) => written += bytes,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    stream.set_write_timeout(patience).unwrap();
    written
}

const SIZES: [usize; 10] = [1, 17, 63, 64, 65, 2047, 2049, 65_535, 65_537, 1_000_003];

#[case]
fn bytes_arrive_in_order(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    for size in SIZES {
        let bytes = bytes(size);
        carry(&client, &server, &bytes);
        carry(&server, &client, &bytes);
        thread::scope(|scope| {
            scope.spawn(|| carry(&client, &server, &bytes));
            carry(&server, &client, &bytes);
        });
    }
}

/// Carries messages of several sizes between a stream of these options and one of default ones.
fn carry_any_size(site: &Site, options: &StreamOptions) {
    let Pair { client, server } = Pair::with(site, options, &StreamOptions::new());
    for size in [1, 65, 10_001] {
        let bytes = bytes(size);
        carry(&client, &server, &bytes);
        carry(&server, &client, &bytes);
    }
}

#[case]
fn tiny_buffers_carry_any_size(site: &Site) {
    let options = StreamOptions::new().receive_buffer(64).send_buffer(64);
    carry_any_size(site, &options.receives(1).sends(2));
}

#[case]
fn small_buffers_carry_any_size(site: &Site) {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    carry_any_size(site, &options.receives(16).sends(16));
}

#[case]
fn uneven_buffers_carry_any_size(site: &Site) {
    let options = StreamOptions::new()
        .receive_buffer(4100)
        .send_buffer(70_000);
    carry_any_size(site, &options.receives(300).sends(3));
}

/// Sequence numbers have 16 bits.
#[case]
fn more_writes_than_credits_can_count(site: &Site) {
    let options = StreamOptions::new().receives(1024).sends(256);
    let Pair { client, server } = Pair::with(site, &options, &options);
    let bytes = bytes(70_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            for byte in &bytes {
                (&client).write_all(&[*byte]).unwrap();
            }
        });
        let mut received = vec![0; bytes.len()];
        (&server).read_exact(&mut received).unwrap();
        assert!(received == bytes);
    });
}

#[case]
fn a_half_closed_stream_carries_the_other_direction(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    (&client).write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let error = (&client).write(b"more").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    let mut question = String::new();
    (&server).read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    let answer = bytes(300_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            (&server).write_all(&answer).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        (&client).read_to_end(&mut received).unwrap();
        assert!(received == answer);
    });
    client.close(PATIENCE).unwrap();
    server.close(PATIENCE).unwrap();
}

/// As with TCP: what was written before arrives.
#[case]
fn a_dropped_stream_delivers_what_was_written(site: &Site) {
    for size in [1, 100_000, 1_000_003] {
        let Pair { client, server } = Pair::new(site);
        let bytes = bytes(size);
        thread::scope(|scope| {
            scope.spawn(|| {
                (&client).write_all(&bytes).unwrap();
                drop(client);
            });
            let mut received = Vec::new();
            (&server).read_to_end(&mut received).unwrap();
            assert!(received == bytes, "{} of {size} bytes", received.len());
        });
        let error = (&server).write(b"anyone?").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
        assert_eq!((&server).read(&mut [0]).unwrap(), 0);
        assert!(server.take_error().unwrap().is_none());
    }
}

#[case]
fn a_closed_stream_has_delivered_what_was_written(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let bytes = bytes(60_000);
    (&client).write_all(&bytes).unwrap();
    client.close(PATIENCE).unwrap();
    let mut received = Vec::new();
    (&server).read_to_end(&mut received).unwrap();
    assert!(received == bytes);
}

#[case]
fn reads_and_writes_wait_for_as_long_as_they_may(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    client.set_read_timeout(Some(SECOND / 20)).unwrap();
    let error = (&client).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    client.set_write_timeout(Some(SECOND / 20)).unwrap();
    let mut written = 0;
    let error = loop {
        match (&client).write(&[7; 10_000]) {
            Ok(bytes) => written += bytes,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    client.set_nonblocking(true).unwrap();
    let error = (&client).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let error = (&client).write(&[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(client.set_read_timeout(Some(Duration::ZERO)).is_err());
    // The stream goes on.
    (&server).read_exact(&mut vec![0; written]).unwrap();
    client.set_nonblocking(false).unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    (&client).write_all(&[1]).unwrap();
    drop(server);
}

#[case]
fn slices_are_read_and_written_one_after_the_other(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let (head, body) = (bytes(10), bytes(5000));
    let slices = [IoSlice::new(&head), IoSlice::new(&[]), IoSlice::new(&body)];
    assert_eq!((&client).write_vectored(&slices).unwrap(), 5010);
    let mut peeked = [0; 10];
    assert!(server.peek(&mut peeked).unwrap() > 0);
    let (mut first, mut second) = ([0; 7], vec![0; 3]);
    let mut slices = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    assert_eq!((&server).read_vectored(&mut slices).unwrap(), 10);
    assert_eq!([&first[..], &second].concat(), head);
    assert_eq!(peeked, *head);
    let mut rest = vec![0; 5000];
    (&server).read_exact(&mut rest).unwrap();
    assert_eq!(rest, body);
    assert_eq!((&client).write(&[]).unwrap(), 0);
    assert_eq!((&server).read(&mut []).unwrap(), 0);
}

#[case]
fn addresses_are_those_of_the_sides(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    assert_eq!(client.local_addr().unwrap(), server.peer_addr().unwrap());
    assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
}

#[case]
fn halves_are_owned_by_different_threads(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let (mut read, mut write) = client.into_split();
    let bytes = bytes(200_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            std::io::copy(&mut &server, &mut &server).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
        });
        scope.spawn(|| {
            write.write_all(&bytes).unwrap();
            drop(write);
        });
        let mut received = Vec::new();
        read.read_to_end(&mut received).unwrap();
        assert!(received == bytes);
    });
}

#[case]
fn a_closed_port_refuses(site: &Site) {
    let port = free_port();
    let error = RdmaStream::connect(site.v4(port)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    let source = error.get_ref().unwrap();
    assert!(
        source
            .downcast_ref::<rdmacm::Error>()
            .unwrap()
            .is_rejected()
    );
}

#[case(needs(CmResponse))]
fn a_client_without_an_answer_delays_nobody(site: &Site) {
    let listener = RdmaListener::bind(site.v4(0)).unwrap();
    // Longer than the client waits for its connection.
    let listener = listener.handshake_deadline(PATIENCE);
    let address = site.v4(listener.local_addr().unwrap().port());
    // Valid, and followed by nothing.
    let mut handshake = [0; 40];
    (handshake[0], handshake[23]) = (1, 2);
    let (channel, _) = site.id();
    let silent: Vec<_> = (0..20)
        .map(|_| {
            let id = site.routed(&channel, address);
            let param = ConnParam::new().qp_number(free_qp_number());
            id.connect(param.private_data(&handshake).unwrap()).unwrap();
            id
        })
        .collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            let client = RdmaStream::connect(address).unwrap();
            (&client).write_all(b"hello").unwrap();
            (&client).read_to_end(&mut Vec::new()).unwrap();
        });
        let (server, _) = accept(&listener);
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        (&server).read_exact(&mut [0; 5]).unwrap();
        server.close(PATIENCE).unwrap();
    });
    drop(silent);
}

#[case]
fn many_clients_connect_at_once(site: &Site) {
    let small = StreamOptions::new().receive_buffer(256).send_buffer(256);
    let small = small.receives(4).sends(4);
    let listener = Listener::bind(site.v4(0)).unwrap();
    let address = listener.local_addr();
    let listener = RdmaListener::new(listener, small.clone());
    thread::scope(|scope| {
        scope.spawn(|| {
            let node = Node::open().unwrap();
            let streams: Vec<_> = (0..100)
                .map(|number: u8| {
                    let connector = Connector::new(address).with_node(&node);
                    let connector = connector.deadline(PATIENCE);
                    let stream = connector.connect_stream(small.clone()).unwrap();
                    (&stream).write_all(&[number]).unwrap();
                    stream
                })
                .collect();
            for (stream, number) in streams.iter().zip(0..) {
                let mut byte = [0];
                { stream }.read_exact(&mut byte).unwrap();
                assert_eq!(byte, [number]);
            }
        });
        let streams: Vec<_> = (0..100).map(|_| accept(&listener).0).collect();
        for stream in &streams {
            let mut byte = [0];
            { stream }.read_exact(&mut byte).unwrap();
            { stream }.write_all(&byte).unwrap();
        }
        // Until the clients have read.
        for stream in &streams {
            assert_eq!({ stream }.read(&mut [0]).unwrap(), 0);
        }
    });
}

/// Listens, connects, accepts and exchanges bytes.
#[case]
fn one_thread_is_both_sides(site: &Site) {
    on_one_thread().block_on(async {
        let listener = rdmacm::tokio::RdmaListener::bind(site.v4(0)).unwrap();
        let address = site.v4(listener.local_addr().unwrap().port());
        let connect = rdmacm::tokio::RdmaStream::connect(address);
        let (client, server) = tokio::join!(connect, listener.accept());
        let (mut client, (mut server, peer)) = (client.unwrap(), server.unwrap());
        assert_eq!(client.local_addr().unwrap(), peer);
        client.write_all(b"ping").await.unwrap();
        let mut read = [0; 4];
        server.read_exact(&mut read).await.unwrap();
        server.write_all(&read).await.unwrap();
        client.read_exact(&mut read).await.unwrap();
        assert_eq!(read, *b"ping");
    });
}
