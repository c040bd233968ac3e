//! Connections that are made, by threads and by tasks.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::thread;

use rdmacm::addrinfo::{AddrInfoResolver, Hints};
use rdmacm::core::{CommandNumber, ConnParam, QueuePair as _, Transport};
use rdmacm::{Cause, Connector, Error, Listener, QueuePairFactory as _, RetryPolicy, Stage};

use crate::hosts::{Hosts, PORT, SECOND, Server, assert_text, channel, node};

#[test]
fn both_sides_know_addresses_private_data_and_queue_pairs() {
    for hosts in Hosts::each() {
        let (client, server) = (node(&hosts.client), node(&hosts.server));
        let listener = hosts.listen(&server);
        let [connection, accepted] = thread::scope(|scope| {
            let accepted = scope.spawn(|| {
                let incoming = listener.accept(60 * SECOND).unwrap();
                assert!(incoming.private_data().starts_with(b"hello"));
                let peer = incoming.peer_addr().unwrap();
                assert_eq!(
                    Some(peer.with_port(0)),
                    hosts.client.address().map(|ip| (ip, 0).into())
                );
                let param = ConnParam::new().private_data(b"welcome").unwrap();
                let incoming = incoming.param(param);
                incoming.accept_with(&hosts.server_pairs).unwrap()
            });
            let connector = hosts.connector(&client).private_data(b"hello").unwrap();
            let connection = connector.connect_with(&hosts.client_pairs).unwrap();
            [connection, accepted.join().unwrap()]
        });
        assert!(connection.private_data().starts_with(b"welcome"));
        assert_eq!(connection.peer_addr().unwrap(), hosts.address().into());
        assert_eq!(accepted.local_addr().unwrap(), hosts.address().into());
        let local = connection.local_addr().unwrap();
        if hosts.transport == Transport::RoCE {
            assert_eq!(accepted.peer_addr().unwrap(), local);
            // iWARP's messages have no numbers of queue pairs.
            let numbers = [&connection, &accepted].map(|side| side.queue_pair().number());
            let known = [&connection, &accepted].map(|side| side.peer().unwrap().qp_number);
            assert_eq!(known, [numbers[1], numbers[0]]);
        }
        drop((connection, accepted));
        hosts.assert_client_is_clean();
        drop(listener);
        hosts.assert_server_is_clean();
    }
}

#[test]
fn connections_are_made_over_ipv6() {
    for hosts in Hosts::each() {
        let address = hosts.server.addresses().into_iter().find(IpAddr::is_ipv6);
        let listener = Listener::options().with_node(&node(&hosts.server));
        let listener = listener.bind("[::]:7471").unwrap();
        let client = node(&hosts.client);
        thread::scope(|scope| {
            let accepted = scope.spawn(|| {
                let incoming = listener.accept(60 * SECOND).unwrap();
                incoming.accept_with(&hosts.server_pairs).unwrap()
            });
            let connector = Connector::new((address.unwrap(), PORT)).with_node(&client);
            let connection = connector.connect_with(&hosts.client_pairs).unwrap();
            accepted.join().unwrap();
            drop(connection);
        });
        hosts.assert_client_is_clean();
    }
}

#[test]
fn many_connections_share_a_node() {
    for hosts in Hosts::each() {
        let server = Server::start(&hosts);
        let client = node(&hosts.client);
        let connections: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| hosts.connector(&client).connect_with(&hosts.client_pairs)))
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.collect()
        });
        assert!(connections.iter().all(Result::is_ok), "{connections:?}");
        assert_eq!(server.stop().len(), 8);
        drop(connections);
        hosts.assert_client_is_clean();
        hosts.assert_server_is_clean();
    }
}

#[test]
fn nobody_listens() {
    for hosts in Hosts::each() {
        let client = node(&hosts.client);
        let connector = hosts.connector(&client);
        let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
        assert_eq!(error.stage(), Stage::Connect);
        assert!(error.is_rejected() && error.is_retryable(), "{error}");
        assert_eq!(error.device(), Some(hosts.device()));
        let expected = format!("connect to {} via {}: ", hosts.address(), hosts.device());
        assert_text(&error, &expected);
        hosts.assert_client_is_clean();
    }
}

#[test]
fn a_resolved_peer_and_a_request_have_both_addresses() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let resolved = hosts.connector(&node(&hosts.client)).resolve().unwrap();
        assert_eq!(resolved.peer_addr().unwrap(), hosts.address().into());
        let device = resolved.device_id().unwrap();
        assert_eq!(device, resolved.id().addresses().unwrap().device);
        assert!(device.is_some());
        let source = resolved.local_addr().unwrap();
        assert_eq!(source.ip(), hosts.client.address());
        thread::scope(|scope| {
            let queue_pair = { &hosts.client_pairs }.create(resolved.id()).unwrap();
            scope.spawn(move || resolved.connect_on(queue_pair).unwrap_err());
            let incoming = listener.accept(60 * SECOND).unwrap();
            assert_eq!(incoming.local_addr().unwrap(), hosts.address().into());
            assert_eq!(incoming.peer_addr().unwrap().ip(), source.ip());
        });
    }
}

#[test]
fn clones_of_a_connector_connect() {
    for hosts in Hosts::each() {
        let server = Server::start(&hosts);
        let client = node(&hosts.client);
        let connector = hosts.connector(&client);
        for connector in [connector.clone(), connector] {
            drop(connector.connect_with(&hosts.client_pairs).unwrap());
        }
        assert_eq!(server.stop().len(), 2);
    }
}

#[test]
fn private_data_that_no_transport_transmits_are_refused() {
    let connector = Connector::new("storage-7:7471");
    let error = connector.private_data(&[7; 1000]).unwrap_err();
    assert_eq!(error.stage(), Stage::Connect);
    assert_eq!(io::Error::from(error).kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_peer_without_a_link_has_no_address() {
    for hosts in Hosts::each() {
        hosts.server.set_link_up(hosts.device(), false);
        let client = node(&hosts.client);
        let connector = hosts.connector(&client).deadline(60 * SECOND);
        let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
        assert_eq!(error.stage(), Stage::ResolveAddress);
        assert!(error.is_timeout(), "{error}");
        assert_eq!(error.elapsed(), 60 * SECOND);
        assert_text(
            &error,
            &format!("resolve the address of {}", hosts.address()),
        );
        hosts.assert_client_is_clean();
    }
}

#[test]
fn a_silent_peer_is_unreachable_when_the_kernel_gives_up() {
    let hosts = Hosts::roce();
    let _listener = hosts.listen(&node(&hosts.server));
    hosts.server.set_responding(false);
    let client = node(&hosts.client);
    let connector = hosts.connector(&client).deadline(200 * SECOND);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    assert_eq!(error.stage(), Stage::Connect);
    assert!(error.is_unreachable() && error.is_timeout(), "{error}");
    // 16 requests of 4096 ms and twice 256 ms each.
    assert_eq!(error.elapsed().as_millis(), 16 * 4608);
    hosts.assert_client_is_clean();
}

#[test]
fn a_lost_group_has_the_kind_of_its_error_number() {
    let hosts = Hosts::roce();
    hosts.server.set_link_up(hosts.device(), false);
    let client = node(&hosts.client);
    let connector = hosts.connector(&client).deadline(200 * SECOND);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    let Cause::Event(failure) = *error.cause() else {
        panic!("{error:?}");
    };
    assert_eq!(failure.raw_os_error(), Some(libc::ETIMEDOUT), "{error}");
    let group = hosts.address().into();
    let lost = Error::new(Stage::Receive, Cause::GroupLost { group, failure });
    assert_eq!(io::Error::from(lost).kind(), ErrorKind::TimedOut);
}

#[test]
fn an_iwarp_peer_that_is_silent_is_given_up_by_tcp() {
    let hosts = Hosts::iwarp();
    let _listener = hosts.listen(&node(&hosts.server));
    hosts.server.set_responding(false);
    let client = node(&hosts.client);
    let connector = hosts.connector(&client).deadline(300 * SECOND);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    assert_eq!(error.stage(), Stage::Connect);
    assert!(error.is_unreachable() && error.is_timeout(), "{error}");
    assert!(error.elapsed() > 100 * SECOND, "{error}");
    hosts.assert_client_is_clean();
}

#[test]
fn a_full_backlog_drops_requests_on_roce() {
    let hosts = Hosts::roce();
    let listener = Listener::options()
        .with_node(&node(&hosts.server))
        .backlog(1);
    let _listener = listener.bind(hosts.address()).unwrap();
    let client = node(&hosts.client);
    let errors = thread::scope(|scope| {
        let attempts = [(); 2].map(|()| {
            let connector = hosts.connector(&client).deadline(3 * SECOND);
            scope.spawn(|| connector.connect_with(&hosts.client_pairs).unwrap_err())
        });
        attempts.map(|attempt| attempt.join().unwrap())
    });
    for error in errors {
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        assert_eq!(error.stage(), Stage::Connect);
    }
    hosts.assert_client_is_clean();
}

/// A route that was resolved before is of an id without options.
#[test]
fn a_connection_with_options_has_a_route_of_its_own() {
    let hosts = Hosts::roce();
    let server = Server::start(&hosts);
    let client = node(&hosts.client);
    let host = hosts.client.clone();
    let resolver = AddrInfoResolver::new().channels(move || channel(&host).open());
    let address = hosts.address();
    let (name, service) = (address.ip().to_string(), address.port().to_string());
    let found = resolver.resolve(&*name, &*service, &Hints::rc()).unwrap();
    for (tos, ack_timeout) in [(0x68, 12), (0x20, 20)] {
        let connector = Connector::new(&found).with_node(&client);
        let connector = connector.tos(tos).ack_timeout(ack_timeout);
        let connection = connector.connect_with(&hosts.client_pairs).unwrap();
        let path = connection.id().path_records().unwrap()[0].record;
        assert_eq!(
            (path.traffic_class, path.packet_life_time),
            (tos, ack_timeout - 1)
        );
    }
    server.stop();
}

/// The kernel chooses a port of RDMA, which TCP may use on iWARP.
#[test]
fn another_source_port_is_tried_if_tcp_uses_the_first_one() {
    let hosts = Hosts::iwarp();
    let server = Server::start(&hosts);
    let client = node(&hosts.client);
    for errno in [libc::EADDRINUSE, libc::EADDRNOTAVAIL] {
        hosts.client.fail_next(CommandNumber::CONNECT, 3, errno);
        let connected = hosts.connector(&client).connect_with(&hosts.client_pairs);
        drop(connected.unwrap());
    }
    hosts
        .client
        .fail_next(CommandNumber::CONNECT, 16, libc::EADDRINUSE);
    let connected = hosts.connector(&client).connect_with(&hosts.client_pairs);
    let error = connected.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE), "{error}");
    assert!(error.attempts() == 16 && error.is_retryable(), "{error}");
    // Which no policy counts.
    hosts
        .client
        .fail_next(CommandNumber::CONNECT, 3, libc::EADDRINUSE);
    hosts
        .client
        .fail_next(CommandNumber::CONNECT, 1, libc::ENOMEM);
    let connector = hosts.connector(&client).retry(RetryPolicy::attempts(2));
    drop(connector.connect_with(&hosts.client_pairs).unwrap());
    // One that the caller chooses is the only one.
    let source = (hosts.client.address().unwrap(), 5000);
    let connector = hosts.connector(&client).source_address(source);
    hosts
        .client
        .fail_next(CommandNumber::CONNECT, 1, libc::EADDRINUSE);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    assert_eq!(error.attempts(), 1, "{error}");
    server.stop();
    hosts.assert_client_is_clean();
}
