//! Peers with several addresses, retries, and a network that loses messages.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use rdmacm::addrinfo::{
    AddrInfo, AddrInfoResolver, Hints, Host, HostQuery, NameError, NameResolver,
};
use rdmacm::core::{CommandNumber, Deadline};
use rdmacm::{CONNECTION_ATTEMPT_DELAY, RetryPolicy, Stage};
use rdmacm::{Cause, Connector, DatagramSocket, Error, Listener, Node, RdmaDatagram, Result};

use crate::hosts::with_two_devices;
use crate::hosts::{Connection, Hosts, PORT, SECOND, Server, assert_text, channel, node};

/// Knows the addresses of `storage-7`.
#[derive(Debug)]
struct Storage(Vec<IpAddr>);

impl NameResolver for Storage {
    fn host(&self, query: &HostQuery<'_>) -> Result<Host, NameError> {
        if query.name != "storage-7" {
            return Err(NameError::NoName);
        }
        let addresses = self.0.iter().map(|address| SocketAddr::from((*address, 0)));
        Ok(addresses.collect())
    }
}

/// What RDMA knows of the server's address.
fn found(hosts: &Hosts, hints: &Hints) -> Vec<AddrInfo> {
    let host = hosts.client.clone();
    let addr_info_resolver = AddrInfoResolver::new().channels(move || channel(&host).open());
    let (ip, port) = (hosts.address().ip().to_string(), PORT.to_string());
    addr_info_resolver.resolve(&*ip, &*port, hints).unwrap()
}

/// A client whose peer has the addresses of two hosts, `server` and then `other`.
struct TwoAddresses {
    hosts: Hosts,
    other: rdmacm_sim::Host,
    client: Node,
}

impl TwoAddresses {
    fn new(hosts: Hosts) -> Self {
        let other = hosts.fabric.find_host("other").unwrap();
        let addresses = [&hosts.server, &other].map(|host| host.address().unwrap());
        let addr_info_resolver = AddrInfoResolver::new().name_resolver(Storage(addresses.to_vec()));
        let options = Node::options().channel(channel(&hosts.client));
        let client = options
            .addr_info_resolver(&addr_info_resolver)
            .open()
            .unwrap();
        Self {
            hosts,
            other,
            client,
        }
    }

    fn each() -> [Self; 2] {
        Hosts::each().map(Self::new)
    }

    fn serve_other(&self) -> Server {
        Server::start_on(&self.other, self.hosts.server_pairs.on(&self.other))
    }

    fn connect(&self) -> Result<Connection> {
        let connector = Connector::new("storage-7:7471").with_node(&self.client);
        connector.connect_with(&self.hosts.client_pairs)
    }

    /// Connects to the other host, and returns how long that took.
    #[track_caller]
    fn reach_other(&self) -> Duration {
        let began = self.hosts.fabric.now();
        let connection = self.connect().unwrap();
        let elapsed = self.hosts.fabric.now() - began;
        let other = SocketAddr::from((self.other.address().unwrap(), PORT));
        assert_eq!(connection.peer_addr().unwrap(), other.into());
        drop(connection);
        self.hosts.assert_client_is_clean();
        elapsed
    }
}

#[test]
fn the_first_address_is_preferred() {
    for two in TwoAddresses::each() {
        let servers = [Server::start(&two.hosts), two.serve_other()];
        let connection = two.connect().unwrap();
        assert_eq!(connection.peer_addr().unwrap(), two.hosts.address().into());
        let [first, other] = servers.map(|server| server.stop().len());
        assert_eq!((first, other), (1, 0));
    }
}

#[test]
fn the_next_address_is_tried_when_the_first_is_dead() {
    for two in TwoAddresses::each() {
        two.hosts.server.set_link_up(two.hosts.device(), false);
        let server = two.serve_other();
        let elapsed = two.reach_other();
        assert!(
            (CONNECTION_ATTEMPT_DELAY..SECOND).contains(&elapsed),
            "{elapsed:?}"
        );
        server.stop();
    }
}

#[test]
fn the_next_address_is_tried_when_the_first_is_silent() {
    let two = TwoAddresses::new(Hosts::roce());
    let _listener = two.hosts.listen(&node(&two.hosts.server));
    two.hosts.server.set_responding(false);
    let server = two.serve_other();
    assert!(two.reach_other() >= CONNECTION_ATTEMPT_DELAY);
    server.stop();
}

/// Each connection leaves one handshake, which nothing interrupts.
#[test]
fn a_silent_address_leaves_handshakes_to_the_next_one() {
    let two = TwoAddresses::new(Hosts::iwarp());
    let _listener = two.hosts.listen(&node(&two.hosts.server));
    two.hosts.server.set_responding(false);
    let server = two.serve_other();
    for number in 0..70 {
        let began = two.hosts.fabric.now();
        drop(two.connect().unwrap());
        let elapsed = two.hosts.fabric.now() - began;
        assert!(elapsed < SECOND, "connection {number}: {elapsed:?}");
    }
    server.stop();
    two.hosts.server.set_responding(true);
}

#[test]
fn the_next_address_is_tried_when_the_first_is_slow() {
    for two in TwoAddresses::each() {
        let servers = [Server::start(&two.hosts), two.serve_other()];
        two.hosts.server.set_delay(4 * CONNECTION_ATTEMPT_DELAY);
        let elapsed = two.reach_other();
        assert!(elapsed >= CONNECTION_ATTEMPT_DELAY, "{elapsed:?}");
        for server in servers {
            server.stop();
        }
    }
}

#[test]
fn the_next_address_is_tried_at_once_when_the_first_rejects() {
    for two in TwoAddresses::each() {
        let server = two.serve_other();
        let elapsed = two.reach_other();
        assert!(elapsed < CONNECTION_ATTEMPT_DELAY, "{elapsed:?}");
        server.stop();
    }
}

#[test]
fn the_error_is_of_the_attempt_that_came_furthest() {
    for two in TwoAddresses::each() {
        // Nobody listens on the other host.
        two.hosts.server.set_link_up(two.hosts.device(), false);
        let error = two.connect().unwrap_err();
        assert_eq!(error.stage(), Stage::Connect, "{error}");
        assert!(error.is_rejected(), "{error}");
        let other = SocketAddr::from((two.other.address().unwrap(), PORT));
        assert_eq!(error.address(), Some(other.into()));
        two.hosts.assert_client_is_clean();
    }
}

/// It is an answer of the peer.
#[test]
fn a_rejection_counts_rather_than_a_timeout_after_it() {
    let two = TwoAddresses::new(Hosts::roce());
    // Nobody listens at the first one.
    two.other.set_responding(false);
    let error = two.connect().unwrap_err();
    assert!(error.is_rejected(), "{error}");
}

/// It is final, and that nobody listens at the other address is not, before it or after it.
#[test]
fn a_rejection_by_a_program_counts_rather_than_the_lack_of_a_listener() {
    let first_or_other = [false, true].into_iter();
    for (two, is_first) in
        first_or_other.flat_map(|is_first| TwoAddresses::each().map(|two| (two, is_first)))
    {
        let host = if is_first {
            &two.hosts.server
        } else {
            &two.other
        };
        let server = node(host);
        let listener = Listener::options().with_node(&server);
        let listener = listener.bind((host.address().unwrap(), PORT)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let incoming = listener.accept(None).unwrap();
                incoming.reject(b"version 2").unwrap();
            });
            let connector = Connector::new("storage-7:7471").with_node(&two.client);
            let connector = connector.retry(RetryPolicy::until_deadline());
            let error = connector.connect_with(&two.hosts.client_pairs).unwrap_err();
            assert!(error.private_data().starts_with(b"version 2"), "{error}");
            assert_eq!(error.attempts(), 1);
        });
    }
}

#[test]
fn an_unknown_name_is_not_looked_up_again() {
    let two = TwoAddresses::new(Hosts::roce());
    let connector = Connector::new("storage-8:7471").with_node(&two.client);
    let connector = connector.retry(RetryPolicy::until_deadline());
    let error = connector.connect_with(&two.hosts.client_pairs).unwrap_err();
    assert_eq!(error.stage(), Stage::LookUp);
    assert!(matches!(error.cause(), Cause::Name(_)), "{error}");
    assert!(
        error.to_string().starts_with("look up storage-8:7471: "),
        "{error}"
    );
}

fn refused(hosts: &Hosts, policy: RetryPolicy) -> Error {
    let client = node(&hosts.client);
    let connector = hosts.connector(&client).retry(policy);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    hosts.assert_client_is_clean();
    error
}

#[test]
fn attempts_are_counted_and_pauses_double() {
    for hosts in Hosts::each() {
        let pause = Duration::from_millis(400);
        let policy = RetryPolicy::attempts(4).initial_backoff(pause);
        let error = refused(&hosts, policy);
        assert_eq!(error.attempts(), 4);
        assert!(error.is_rejected(), "{error}");
        // 400 ms, 800 ms and a second, each shortened by up to a half.
        let all = Duration::from_millis(2200);
        assert!((all / 2..=all).contains(&error.elapsed()), "{error}");
    }
}

#[test]
fn retries_end_at_the_deadline() {
    for hosts in Hosts::each() {
        let error = refused(&hosts, RetryPolicy::until_deadline());
        assert!(error.attempts() > 10, "{error}");
        assert!(error.is_rejected(), "{error}");
        let elapsed = error.elapsed();
        assert!((13 * SECOND..=15 * SECOND).contains(&elapsed), "{error}");
    }
}

/// The last retry begins before the deadline, and ends without an answer.
#[test]
fn an_attempt_that_the_deadline_cuts_short_does_not_hide_the_reason() {
    let hosts = Hosts::roce();
    hosts.fabric.set_delay(Duration::from_millis(200));
    let client = node(&hosts.client);
    let pause = Duration::from_millis(100);
    let policy = RetryPolicy::until_deadline()
        .initial_backoff(pause)
        .max_backoff(pause);
    let connector = hosts.connector(&client).retry(policy);
    for deadline in [1000, 1100, 1200, 1300] {
        let connector = connector.clone().deadline(Duration::from_millis(deadline));
        let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
        assert!(error.is_rejected() && error.attempts() > 1, "{error}");
    }
}

#[test]
fn a_retry_connects() {
    for hosts in Hosts::each() {
        let server = Server::start(&hosts);
        let client = node(&hosts.client);
        let command = CommandNumber::CREATE_ID;
        hosts.client.fail_next(command, 2, libc::ENOMEM);
        let connector = hosts.connector(&client).retry(RetryPolicy::attempts(3));
        let connection = connector.connect_with(&hosts.client_pairs).unwrap();
        drop(connection);
        hosts.assert_client_is_clean();
        server.stop();
    }
}

#[test]
fn an_attempt_is_cut_short_and_retried() {
    let hosts = Hosts::roce();
    let server = Server::start(&hosts);
    hosts.client.drop_next(rdmacm_sim::MessageKind::Request, 1);
    let client = node(&hosts.client);
    let policy = RetryPolicy::attempts(2).attempt_timeout(SECOND);
    let began = hosts.fabric.now();
    let connector = hosts.connector(&client).retry(policy);
    let connection = connector.connect_with(&hosts.client_pairs).unwrap();
    // The kernel would send the request again after 4.6 s.
    let elapsed = hosts.fabric.now() - began;
    assert!((SECOND..2 * SECOND).contains(&elapsed), "{elapsed:?}");
    drop(connection);
    hosts.assert_client_is_clean();
    server.stop();
}

#[test]
fn the_limit_of_an_attempt_is_that_of_each_address() {
    for two in TwoAddresses::each() {
        two.hosts.server.set_link_up(two.hosts.device(), false);
        let server = two.serve_other();
        let limit = CONNECTION_ATTEMPT_DELAY / 2;
        let connector = Connector::new("storage-7:7471").with_node(&two.client);
        let connector = connector.retry(RetryPolicy::never().attempt_timeout(limit));
        let connection = connector.connect_with(&two.hosts.client_pairs).unwrap();
        let other = SocketAddr::from((two.other.address().unwrap(), PORT));
        assert_eq!(connection.peer_addr().unwrap(), other.into());
        drop(connection);
        server.stop();
    }
}

/// The kernel gives a port of an address to one id at a time.
#[test]
fn addresses_are_tried_in_turn_from_a_port_of_the_callers() {
    for two in TwoAddresses::each() {
        let source = SocketAddr::from((two.hosts.client.address().unwrap(), 5000));
        let reach_other = || {
            let server = two.serve_other();
            let connector = Connector::new("storage-7:7471").with_node(&two.client);
            let connector = connector.source_address(source);
            let connector =
                connector.retry(RetryPolicy::never().attempt_timeout(3 * CONNECTION_ATTEMPT_DELAY));
            let connection = connector.connect_with(&two.hosts.client_pairs).unwrap();
            assert_eq!(connection.local_addr().unwrap(), source.into());
            let other = SocketAddr::from((two.other.address().unwrap(), PORT));
            assert_eq!(connection.peer_addr().unwrap(), other.into());
            drop(connection);
            two.hosts.assert_client_is_clean();
            server.stop();
        };
        // The first host has no listener, and then no link.
        reach_other();
        two.hosts.server.set_link_up(two.hosts.device(), false);
        reach_other();
    }
}

#[test]
fn lost_messages_delay_connections() {
    for seed in 0..12 {
        let mut hosts = Hosts::roce();
        hosts.fabric = hosts.fabric.clone().seed(seed);
        let server = Server::start(&hosts);
        hosts.fabric.set_loss(30);
        let client = node(&hosts.client);
        let connector = hosts.connector(&client).deadline(Deadline::Never);
        let policy = RetryPolicy::attempts(10);
        let connection = connector.retry(policy).connect_with(&hosts.client_pairs);
        let connection = connection.unwrap();
        // A lost reply is not sent again once the server's id has left TIMEWAIT.
        if let Err(error) = connection.close(Deadline::Never) {
            assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT), "{error}");
        }
        hosts.fabric.set_loss(0);
        drop(connection);
        hosts.assert_client_is_clean();
        server.stop();
        hosts.assert_server_is_clean();
    }
}

#[test]
fn the_source_is_an_address_of_the_device() {
    let [server, client] = with_two_devices();
    let client = node(&client);
    let resolve = |peer: IpAddr, device| {
        let connector = Connector::new((peer, PORT)).with_node(&client);
        let resolved = connector.source_device(device).resolve()?;
        resolved.local_addr()
    };
    let [v4, .., v6] = server.addresses()[..] else {
        panic!("{server:?}");
    };
    for (peer, device, expected) in [
        (v4, "rxe0", "10.1.0.1"),
        (v4, "rxe1", "10.1.0.2"),
        (v6, "rxe1", "fd71::1"),
    ] {
        let source = resolve(peer, device).unwrap();
        assert_eq!(source.ip(), Some(expected.parse().unwrap()), "{device}");
    }
    for (peer, device) in [(v4, "rxe2"), (v6, "rxe0")] {
        let error = resolve(peer, device).unwrap_err();
        assert_eq!(error.stage(), Stage::Bind);
        assert_text(error.cause(), "no address of this family on rxe");
    }
}

/// The routes of a list begin at the addresses that the kernel chose for it.
#[test]
fn a_source_of_the_callers_has_a_route_of_its_own() {
    let [server, client] = with_two_devices();
    let host = client.clone();
    let addr_info_resolver = AddrInfoResolver::new().channels(move || channel(&host).open());
    let name = server.address().unwrap().to_string();
    let found = addr_info_resolver
        .resolve(&*name, "7471", &Hints::rc())
        .unwrap();
    let client = node(&client);
    for device in ["rxe0", "rxe1"] {
        let connector = Connector::new(&found).with_node(&client);
        let resolved = connector.source_device(device).resolve().unwrap();
        let source = resolved.local_addr().unwrap().ip().unwrap();
        let path = resolved.id().path_records().unwrap()[0].record;
        assert_eq!(
            path.sgid.to_string(),
            format!("::ffff:{source}"),
            "{device}"
        );
    }
}

#[test]
fn a_list_that_rdma_does_not_reach_has_the_reason() {
    for hosts in Hosts::each() {
        hosts.server.set_link_up(hosts.device(), false);
        let found = found(&hosts, &Hints::rc().deadline(SECOND));
        let reason = found[0].route.as_ref().unwrap_err().to_string();
        let connector = Connector::new(&found).with_node(&node(&hosts.client));
        let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
        assert_eq!(error.stage(), Stage::LookUp);
        assert_eq!(error.address(), Some(hosts.address().into()));
        assert!(error.to_string().contains(&reason), "{error}");
        assert!(error.is_timeout() && !error.is_retryable(), "{error}");
        assert_eq!(std::io::Error::from(error).kind(), ErrorKind::TimedOut);
    }
}

#[test]
fn an_empty_list_has_no_address() {
    let hosts = Hosts::roce();
    let datagrams = found(&hosts, &Hints::ud());
    assert!(datagrams[0].is_reachable());
    for list in [&[][..], &datagrams] {
        let connector = Connector::new(list).with_node(&node(&hosts.client));
        let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
        assert_eq!(error.stage(), Stage::LookUp);
        assert_text(error.cause(), "no address to connect to: ");
        assert_eq!(std::io::Error::from(error).kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn datagrams_have_results_of_their_own() {
    let hosts = Hosts::roce();
    let client = node(&hosts.client);
    let stage = |hints| {
        let found = found(&hosts, &hints);
        let options = DatagramSocket::options().with_node(&client);
        options.connect(&found, SECOND).unwrap_err().stage()
    };
    assert_eq!(stage(Hints::rc()), Stage::LookUp);
    // Nobody is there.
    assert_eq!(stage(Hints::ud()), Stage::Connect);
}

#[test]
fn a_datagram_socket_has_an_ip_address() {
    for address in ["storage-7", "[fe80::2:c903:a1:b2c3]/service 0x1061d2f"] {
        let error = RdmaDatagram::bind(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert_eq!(Error::from_io(&error).map(Error::stage), Some(Stage::Bind));
    }
}
