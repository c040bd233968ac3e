//! A listener with many clients, some of which never complete their handshake.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdmacm::{ACCEPT_DEADLINE, Connector, Listener, Node, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_core::{CmAddr, CmId, ConnParam, EventChannel};
use rdmacm_tests::{PATIENCE, PLAIN, SECOND, Site, Soft, free_port, free_qp_number};
use rdmacm_tests_macros::case;
use tokio::net::TcpSocket;

use super::accept;
use super::rsocket_calls::script;
use super::rstream::expect_end;
use crate::connector::asynchronous::on_one_thread;
use crate::packet_delay::hold_back_first_messages;
use crate::rdma_core::RdmaCore;

/// How many handshakes a listener has in flight at most.
const HANDSHAKES: usize = 64;
/// Sets how many connect, for a longer run.
const CLIENTS: &str = "RDMACM_CLIENTS";
/// How many connect at a time.
const AT_A_TIME: usize = 4;

/// How many clients of librdmacm connect: one process of it does not open 60 on siw with Linux 6.1.
fn of_librdmacm(site: &Site) -> usize {
    match site.soft {
        Soft::Rxe => 60,
        Soft::Siw => 16,
    }
}

fn clients() -> usize {
    std::env::var(CLIENTS).map_or(100, |clients| clients.parse().unwrap())
}

fn options() -> StreamOptions {
    let small = StreamOptions::new().receive_buffer(256).send_buffer(256);
    small.receives(4).sends(4)
}

/// Whether there is one more, of all threads.
fn takes_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
        left.checked_sub(1)
    })
    .is_ok()
}

/// Sends a byte on a stream of its own, and reads it.
fn ask(node: &Node, address: CmAddr) {
    let connector = Connector::new(address).with_node(node).deadline(PATIENCE);
    let mut stream = connector.connect_stream(options()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"?").unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"!");
}

fn answer(site: &Site, mut stream: &RdmaStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut question = [0];
    stream.read_exact(&mut question).unwrap();
    assert_eq!(question, *b"?");
    stream.write_all(b"!").unwrap();
    expect_end(site, stream);
}

/// Many connect to this listener, each of which gets a stream.
fn serve(site: &Site, listener: &RdmaListener, clients: usize) {
    let address = address(site, listener);
    let (asking, answering) = (AtomicUsize::new(clients), AtomicUsize::new(clients));
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                let node = Node::open().unwrap();
                while takes_one(&asking) {
                    ask(&node, address);
                }
            });
            scope.spawn(|| {
                while takes_one(&answering) {
                    answer(site, &accept(listener).0);
                }
            });
        }
    });
}

/// Peers that have asked to connect with a valid handshake, and never answer the reply.
fn silent_clients(site: &Site, address: CmAddr, number: usize) -> (EventChannel, Vec<CmId>) {
    let mut handshake = [0; 40];
    (handshake[0], handshake[23]) = (1, 2);
    let (channel, _) = site.id();
    let connect = || {
        let id = site.routed(&channel, address);
        let param = ConnParam::new().qp_number(free_qp_number());
        id.connect(param.private_data(&handshake).unwrap()).unwrap();
        id
    };
    let silent = std::iter::repeat_with(connect).take(number).collect();
    (channel, silent)
}

/// Connections of TCP to this address. Their own one is another, as siw chooses ports without
/// asking TCP.
fn connections(address: SocketAddr, number: usize) -> Vec<TcpStream> {
    on_one_thread().block_on(async {
        let mut connections = Vec::new();
        for _ in 0..number {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((PLAIN, 0).into()).unwrap();
            let connection = socket.connect(address).await.unwrap();
            connections.push(connection.into_std().unwrap());
        }
        connections
    })
}

fn listener(site: &Site) -> RdmaListener {
    RdmaListener::new(Listener::bind(site.v4(free_port())).unwrap(), options())
}

fn address(site: &Site, listener: &RdmaListener) -> CmAddr {
    site.v4(listener.local_addr().unwrap().port())
}

/// Clients that connect and do no more.
enum Silent {
    /// Of RoCE: one of the handshakes is left that are in flight at a time.
    Asking { _ids: (EventChannel, Vec<CmId>) },
    /// Of TCP, without a request. siw does not tell its user of them.
    Connected { _connections: Vec<TcpStream> },
}

impl Silent {
    fn connect(site: &Site, listener: &RdmaListener) -> Self {
        match site.soft {
            Soft::Rxe => Self::Asking {
                _ids: silent_clients(site, address(site, listener), HANDSHAKES - 1),
            },
            Soft::Siw => Self::Connected {
                _connections: connections(listener.local_addr().unwrap(), 2 * HANDSHAKES),
            },
        }
    }
}

#[case]
fn silent_clients_delay_nobody(site: &Site) {
    // Silent clients are not given up before the others are served.
    let listener = listener(site).handshake_deadline(5 * PATIENCE);
    let _silent = Silent::connect(site, &listener);
    serve(site, &listener, clients());
}

/// The handshakes of silent clients end sooner, and there are fewer of them.
#[case(needs(CmResponse), waiting)]
fn a_listener_limits_its_handshakes(site: &Site) {
    let listener = listener(site)
        .max_handshakes(4)
        .handshake_deadline(2 * SECOND);
    // Twice as many as are in flight with one more for each other caller, and one.
    let silent = 2 * (4 + AT_A_TIME - 1) + 1;
    let _silent = silent_clients(site, address(site, &listener), silent);
    let start = Instant::now();
    serve(site, &listener, AT_A_TIME);
    let elapsed = start.elapsed();
    assert!(
        (4 * SECOND..2 * ACCEPT_DEADLINE).contains(&elapsed),
        "{elapsed:?}"
    );
}

/// Clients of librdmacm connect one after the other, and stay until the last one has connected.
/// The kernel gives up silent ones after more than a minute.
#[case(needs(Preloaded))]
fn silent_clients_do_not_delay_librdmacm(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(0) {
        let listener = listener(site).handshake_deadline(5 * PATIENCE);
        let address = address(site, &listener);
        let _silent = Silent::connect(site, &listener);
        hold_back_first_messages(site, &address.port().to_string());
        let number = of_librdmacm(site);
        let clients = script(site, rdma_core, "closes", address.port(), &[number]);
        let stop = listener.stop_handle();
        let mut longest = Duration::ZERO;
        thread::scope(|scope| {
            let clients = scope.spawn(move || {
                let ended = clients.finish_within(5 * PATIENCE);
                if !ended.status.success() {
                    stop.stop();
                }
                ended
            });
            for _ in 0..number {
                let start = Instant::now();
                // Fails if the clients have.
                let Ok((stream, _)) = listener.accept() else {
                    break;
                };
                longest = longest.max(start.elapsed());
                scope.spawn(move || {
                    stream.set_read_timeout(Some(5 * PATIENCE)).unwrap();
                    expect_end(site, &stream);
                });
            }
            clients.join().unwrap().assert_success();
        });
        assert!(longest < PATIENCE / 2, "{longest:?} without a client");
    }
}

/// No handshake is left until the listener has given up some of them.
#[case(needs(CmResponse), waiting)]
fn more_silent_clients_delay_others_until_they_are_given_up(site: &Site) {
    let listener = listener(site);
    let _silent = silent_clients(site, address(site, &listener), HANDSHAKES + 6);
    let start = Instant::now();
    serve(site, &listener, AT_A_TIME);
    assert!(start.elapsed() >= ACCEPT_DEADLINE, "{:?}", start.elapsed());
}
