//! Byte streams between simulated hosts.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use libc::{EIO, ENOMEM};
use rdmacm::verbs::CommandNumber;
use rdmacm::{
    CLOSE_DEADLINE, Cause, Connector, Listener, Node, RdmaListener, RdmaStream, StreamOptions, core,
};
use rdmacm_sim::{Fabric, Host, MessageKind};

use crate::hosts::{PORT, channel};

mod abandoned_polls;
mod cancellation;
mod forked;
mod full_listener;
#[cfg(feature = "futures-io")]
mod futures;
mod halves;
mod in_place;
mod incoming;
mod keep_alive;
mod lingering;
mod readiness;
mod shared_receives;
mod slow_commands;
mod tasks;

const SECOND: Duration = Duration::from_secs(1);

/// Two hosts, of which the second listens.
struct Hosts {
    fabric: Fabric,
    device: &'static str,
    server: Host,
    client_node: Node,
    listener: RdmaListener,
}

impl Hosts {
    /// Hosts with RoCE devices, and hosts with iWARP devices.
    fn each() -> [Self; 2] {
        let names = ["client", "server"];
        [
            Self::new(Fabric::roce(names), "rxe0"),
            Self::new(Fabric::iwarp(names), "siw0"),
        ]
    }

    fn new(fabric: Fabric, device: &'static str) -> Self {
        Self::with(fabric, device, small())
    }

    /// Hosts with options for the server's streams.
    fn with(fabric: Fabric, device: &'static str, options: StreamOptions) -> Self {
        let fabric = fabric.seed(7);
        let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
        let [client_node, server_node] = [&client, &server].map(|host| {
            let options = Node::options().channel(channel(host));
            options
                .device_source(Arc::new(host.clone()))
                .open()
                .unwrap()
        });
        let address = (server.address().unwrap(), PORT);
        let listener = Listener::options().with_node(&server_node);
        Self {
            listener: RdmaListener::new(listener.bind(address).unwrap(), options),
            fabric,
            device,
            server,
            client_node,
        }
    }

    fn connector(&self) -> Connector {
        let address = (self.server.address().unwrap(), PORT);
        Connector::new(address).with_node(&self.client_node)
    }

    /// Two connected ends: the client's and the server's.
    fn connect(&self) -> (RdmaStream, RdmaStream) {
        self.connect_with(small())
    }

    /// The same with options for the client.
    fn connect_with(&self, options: StreamOptions) -> (RdmaStream, RdmaStream) {
        thread::scope(|scope| {
            let accepting = scope.spawn(|| self.listener.accept().unwrap().0);
            let stream = self.connector().connect_stream(options).unwrap();
            (stream, accepting.join().unwrap())
        })
    }
}

/// Buffers that wrap around often, and few requests.
fn small() -> StreamOptions {
    let options = StreamOptions::new().receive_buffer(1000).send_buffer(700);
    let options = options.receives(8).sends(6).map_entries(1);
    // Of the machine's clock, for tasks.
    options.linger(Duration::from_millis(20))
}

fn bytes(length: usize) -> Vec<u8> {
    let byte = |at: usize| (at ^ (at >> 8)).to_le_bytes()[0];
    (0..length).map(byte).collect()
}

#[test]
fn a_node_waits_until_the_bytes_of_a_dropped_stream_have_arrived() {
    for hosts in Hosts::each() {
        let (client, mut server) = hosts.connect_with(small().linger(60 * SECOND));
        hosts.fabric.set_delay(SECOND);
        (&client).write_all(b"last words").unwrap();
        drop(client);
        let waited = hosts.client_node.wait_for_dropped_streams(SECOND / 2);
        // On iWARP this host's TCP has acknowledged them.
        if hosts.device == "rxe0" {
            let error = waited.unwrap_err();
            assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        }
        let waited = hosts.client_node.wait_for_dropped_streams(60 * SECOND);
        waited.unwrap();
        let mut text = String::new();
        server.read_to_string(&mut text).unwrap();
        assert_eq!(text, "last words");
    }
}

#[test]
fn bytes_arrive_in_order_in_both_directions() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        for length in [1, 64, 65, 499, 501, 10_000] {
            let bytes = bytes(length);
            thread::scope(|scope| {
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let bytes = &bytes;
                    scope.spawn(move || { from }.write_all(bytes).unwrap());
                    scope.spawn(move || {
                        let mut received = vec![0; bytes.len()];
                        { to }.read_exact(&mut received).unwrap();
                        assert!(received == *bytes);
                    });
                }
            });
        }
    }
}

#[test]
fn what_is_put_into_slots_arrives() {
    for hosts in Hosts::each() {
        let (mut client, mut server) = hosts.connect();
        let bytes = bytes(10_000);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut left = &bytes[..];
                while !left.is_empty() {
                    let mut slot = client.reserve(left.len()).unwrap();
                    let (now, later) = left.split_at(slot.len());
                    slot.copy_from_slice(now);
                    slot.commit(now.len()).unwrap();
                    left = later;
                }
            });
            let mut received = vec![0; bytes.len()];
            server.read_exact(&mut received).unwrap();
            assert!(received == bytes);
        });
    }
}

#[test]
fn mapped_memory_is_written_at_its_offset() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        let memory = client.map(5000, 7).unwrap();
        (&client).write_all(b"m").unwrap();
        (&server).read_exact(&mut [0]).unwrap();
        let bytes = bytes(5000);
        server.write_all_at(&bytes, 7).unwrap();
        let beyond = server.write_at(b"x", 5007).unwrap_err();
        assert_eq!(beyond.kind(), ErrorKind::InvalidInput);
        (&server).write_all(b"w").unwrap();
        (&client).read_exact(&mut [0]).unwrap();
        let mut written = vec![0; bytes.len()];
        memory.read(0, &mut written);
        assert!(written == bytes);
    }
}

#[test]
fn a_stream_that_is_closed_for_writing_still_reads() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        (&client).write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let refused = (&client).write(b"more").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
        let mut question = String::new();
        (&server).read_to_string(&mut question).unwrap();
        assert_eq!(question, "question");
        (&server).write_all(b"answer").unwrap();
        drop(server);
        let mut answer = String::new();
        (&client).read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer");
        client.close(CLOSE_DEADLINE).unwrap();
    }
}

#[test]
fn writes_fail_once_the_peer_has_shut_down_both_directions() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        (&client).write_all(b"bye").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        (&server).read_to_end(&mut received).unwrap();
        assert_eq!(received, b"bye");
        assert_eq!((&server).write(b"read").unwrap(), 4);
        client.shutdown(Shutdown::Read).unwrap();
        let refused = (&server).write(b"unread").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
        client.close(CLOSE_DEADLINE).unwrap();
        server.close(CLOSE_DEADLINE).unwrap();
    }
}

#[test]
fn a_connection_without_an_end_is_reset() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        (&client).write_all(b"bye").unwrap();
        let mut read = [0; 3];
        (&server).read_exact(&mut read).unwrap();
        hosts.server.remove_device(hosts.device);
        for error in [
            (&server).read(&mut [0]).unwrap_err(),
            (&server).write(&[0]).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
        }
        assert!(server.take_error().unwrap().is_some());
        assert!(server.take_error().unwrap().is_none(), "it is taken once");
        (&server).read(&mut [0]).unwrap_err();
        drop(client);
    }
}

/// Its peer must not take what has come for all there is.
#[test]
fn an_aborted_stream_does_not_end() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        (&client).write_all(b"half").unwrap();
        let (mut from_server, to_server) = client.into_split();
        thread::scope(|scope| {
            let reading = scope.spawn(move || from_server.read(&mut [0]).unwrap_err());
            let mut read = [0; 4];
            (&server).read_exact(&mut read).unwrap();
            to_server.abort();
            let error = reading.join().unwrap();
            assert_eq!(error.kind(), ErrorKind::ConnectionAborted, "{error}");
        });
        for error in [
            (&server).read(&mut [0]).unwrap_err(),
            (&server).write(&[0]).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        let error = server.shutdown(Shutdown::Both).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
}

/// As one that exits, having said that it writes no more.
#[test]
fn a_peer_that_has_finished_may_disconnect_before_this_side_has() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!((&server).read(&mut [0]).unwrap(), 0);
        let (_from_server, to_server) = client.into_split();
        to_server.abort();
        hosts.fabric.advance(SECOND);
        // Reads the events of the node.
        hosts.listener.set_nonblocking(true).unwrap();
        hosts.listener.accept().unwrap_err();
        assert!(server.take_error().unwrap().is_some());
        server.shutdown(Shutdown::Write).unwrap();
    }
}

#[test]
fn nothing_is_read_of_a_stream_after_it_was_aborted() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        (&client).write_all(b"hello").unwrap();
        (&server).read_exact(&mut [0; 5]).unwrap();
        (&server).write_all(b"unread").unwrap();
        assert!(client.peek(&mut [0]).unwrap() == 1);
        let (mut from_server, to_server) = client.into_split();
        to_server.abort();
        let error = from_server.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionAborted, "{error}");
        drop(server);
    }
}

#[test]
fn a_peer_without_the_protocol_is_refused_and_delays_nobody() {
    for hosts in Hosts::each() {
        thread::scope(|scope| {
            let accepting = scope.spawn(|| hosts.listener.accept().unwrap().0);
            for private_data in [&b""[..], &[2; 40], &[1]] {
                let connector = hosts.connector().private_data(private_data).unwrap();
                let error = connector.connect().unwrap_err();
                assert!(error.is_rejected(), "{error}");
            }
            let stream = hosts.connector().connect_stream(small()).unwrap();
            (&stream).write_all(b"hello").unwrap();
            let server = accepting.join().unwrap();
            (&server).read_exact(&mut [0; 5]).unwrap();
        });
    }
}

/// The peer is not to blame, and the next one is accepted.
#[test]
fn a_listener_reports_that_its_kernel_has_no_memory() {
    for hosts in Hosts::each() {
        hosts
            .server
            .fail_next(core::CommandNumber::ACCEPT, 1, ENOMEM);
        thread::scope(|scope| {
            let accepting = scope.spawn(|| hosts.listener.accept().unwrap_err());
            hosts.connector().connect_stream(small()).unwrap_err();
            let error = accepting.join().unwrap();
            assert_eq!(cause_of(&error).raw_os_error(), Some(ENOMEM));
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        });
        hosts.connect();
    }
}

#[test]
fn a_server_without_the_protocol_is_not_supported() {
    for hosts in Hosts::each() {
        let server = hosts.server.address().unwrap();
        let node = Node::options().channel(channel(&hosts.server));
        let node = node.device_source(Arc::new(hosts.server.clone()));
        let listener = Listener::options().with_node(&node.open().unwrap());
        let listener = listener.bind((server, PORT + 1)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| listener.accept(None).unwrap().accept().unwrap());
            let connector = Connector::new((server, PORT + 1)).with_node(&hosts.client_node);
            let error = connector.connect_stream(small()).unwrap_err();
            assert!(matches!(error.cause(), Cause::Handshake(_)), "{error}");
            assert_eq!(std::io::Error::from(error).kind(), ErrorKind::Unsupported);
        });
    }
}

#[test]
fn no_option_delays_writes() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        for nodelay in [false, true] {
            client.set_nodelay(nodelay).unwrap();
            assert!(client.nodelay().unwrap());
            (&client).write_all(b"x").unwrap();
            (&server).read_exact(&mut [0]).unwrap();
        }
    }
}

#[test]
fn many_streams_share_a_node() {
    for hosts in Hosts::each() {
        let streams: Vec<_> = (0..30).map(|_| hosts.connect()).collect();
        thread::scope(|scope| {
            for (client, server) in &streams {
                scope.spawn(move || {
                    std::io::copy(&mut { server }, &mut { server }).unwrap();
                    server.shutdown(Shutdown::Write).unwrap();
                });
                scope.spawn(move || {
                    { client }.write_all(&bytes(3000)).unwrap();
                    client.shutdown(Shutdown::Write).unwrap();
                });
                scope.spawn(move || {
                    let mut received = Vec::new();
                    { client }.read_to_end(&mut received).unwrap();
                    assert!(received == bytes(3000));
                });
            }
        });
    }
}

#[test]
fn a_read_that_times_out_says_after_which_time() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        client.set_read_timeout(Some(SECOND)).unwrap();
        let error = { &client }.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(cause_of(&error).elapsed() >= SECOND, "{error}");
        drop(server);
    }
}

/// The library's own error in one of `std::io`.
fn cause_of(error: &std::io::Error) -> &rdmacm::Error {
    rdmacm::Error::from_io(error).unwrap()
}

#[test]
fn a_write_that_no_device_acknowledges_is_reported() {
    let hosts = Hosts::new(Fabric::roce(["client", "server"]), "rxe0");
    let (client, server) = hosts.connect();
    hosts.server.set_link_up(hosts.device, false);
    (&client).write_all(&[1; 100]).unwrap();
    let error = client.close(SECOND).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let error = cause_of(&error);
    assert!(
        matches!(error.cause(), Cause::NotAcknowledged(100)),
        "{error}"
    );
    assert!(error.elapsed() >= SECOND, "{error}");
    drop(server);
}

/// As those to a peer that has closed the stream before they came.
#[test]
fn a_write_that_is_not_acknowledged_before_the_peer_closes_is_reported() {
    let hosts = Hosts::new(Fabric::roce(["client", "server"]), "rxe0");
    let (mut client, server) = hosts.connect();
    hosts.server.drop_next(MessageKind::DataReply, usize::MAX);
    (&client).write_all(&[1; 100]).unwrap();
    drop(server);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    let error = client.close(CLOSE_DEADLINE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
}

/// RFC 5044 §7.1: the connecting side sends first.
#[test]
fn on_iwarp_an_early_shutdown_waits_for_the_connecting_side() {
    let fabric = Fabric::iwarp(["client", "server"]);
    let client_host = fabric.find_host("client").unwrap();
    let hosts = Hosts::new(fabric, "siw0");
    let first_message = client_host.hold_next(CommandNumber::POST_SEND);
    thread::scope(|scope| {
        let connecting = scope.spawn(|| hosts.connector().connect_stream(small()).unwrap());
        let (mut server, _) = hosts.listener.accept().unwrap();
        // The next message that is posted fails: the client's first one makes the server send it.
        hosts.server.fail_next(CommandNumber::POST_SEND, 1, EIO);
        server.shutdown(Shutdown::Write).unwrap();
        drop(first_message);
        let _client = connecting.join().unwrap();
        let error = server.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
    });
}
