//! Failures on request, and the time that they take.

use std::net::Ipv4Addr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rdmacm_core::{CmId, CommandNumber, EventKind, PortSpace};
use rdmacm_sim::{Host, KernelVersion, MessageKind};
use rdmacm_test_helpers::PATIENCE;

use crate::forked::child_ends;
use crate::pair::{Asked, Connected, Hosts, PORT, client_param, server_param};
use crate::{SECOND, errno, expect};

/// How long 16 tries take on Linux 7.3: 4096 ms and twice 256 ms each.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(16 * 4608);

#[test]
fn a_peer_without_a_link_is_no_neighbour() {
    for hosts in Hosts::each() {
        let device = hosts.choose("rxe0", "siw0");
        hosts.server.set_link_up(device, false);
        let channel = hosts.client.channel().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        let begun = channel.now();
        id.resolve_addr(None, hosts.address(), 2 * SECOND).unwrap();
        let event = channel.next_event(None).unwrap();
        assert_eq!(event.kind(), EventKind::AddrError);
        let failure = event.failure().unwrap();
        assert_eq!(failure.raw_os_error(), Some(libc::ETIMEDOUT));
        assert_eq!(channel.now() - begun, 2 * SECOND);
        // It may try again.
        hosts.server.set_link_up(device, true);
        id.resolve_addr(None, hosts.address(), SECOND).unwrap();
        expect(&channel, EventKind::AddrResolved);
    }
}

#[test]
fn a_host_without_a_link_has_no_route() {
    let hosts = Hosts::roce();
    hosts.client.set_link_up("rxe0", false);
    let channel = hosts.client.channel().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let outcome = id.resolve_addr(None, hosts.address(), SECOND);
    errno(outcome, libc::ENETUNREACH);
}

#[test]
fn a_peer_that_does_not_respond_is_unreachable() {
    for (version, timeout) in [
        (KernelVersion::Linux7_3, REQUEST_TIMEOUT),
        (KernelVersion::Linux6_1, Duration::from_millis(16 * 6144)),
    ] {
        let mut hosts = Hosts::roce();
        hosts.client = hosts.client.kernel_version(version);
        let _listener = hosts.listen(1);
        hosts.server.set_responding(false);
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        let begun = channel.now();
        id.connect(client_param()).unwrap();
        let event = channel.next_event(None).unwrap();
        assert_eq!(event.kind(), EventKind::Unreachable);
        assert_eq!(event.status(), -libc::ETIMEDOUT);
        assert_eq!(channel.now() - begun, timeout);
    }
}

#[test]
fn tcp_gives_up_after_two_minutes() {
    let hosts = Hosts::iwarp();
    let _listener = hosts.listen(1);
    let channel = hosts.client.channel().unwrap();
    let id = hosts.routed(&channel);
    hosts.server.set_responding(false);
    let begun = channel.now();
    errno(id.connect(client_param()), libc::ETIMEDOUT);
    assert_eq!(channel.now() - begun, Duration::from_secs(127));
    // It may try again.
    hosts.server.set_responding(true);
    id.connect(client_param()).unwrap();
}

/// `CONNECT` waits for TCP with a descriptor of its own.
#[test]
fn a_connect_without_a_descriptor_leaves_the_id_as_it_was() {
    let refuse = |hosts: &Hosts, id: &CmId| {
        hosts.server.set_responding(false);
        let (limit, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 0, most).unwrap();
        let connected = id.connect(client_param());
        setrlimit(Resource::RLIMIT_NOFILE, limit, most).unwrap();
        errno(connected, libc::EMFILE);
    };
    // The limit is that of a process.
    let has_ended = child_ends(|| {
        let hosts = Hosts::iwarp();
        let channel = hosts.client.channel().unwrap();
        let [first, second] = [(); 2].map(|()| hosts.routed(&channel));
        let begun = channel.now();
        refuse(&hosts, &first);
        drop(first);
        assert_eq!(hosts.client.id_count(), 1);
        refuse(&hosts, &second);
        // Nobody listens.
        hosts.server.set_responding(true);
        errno(second.connect(client_param()), libc::ECONNREFUSED);
        drop(second);
        assert_eq!(hosts.client.id_count(), 0);
        assert_eq!(channel.now(), begun);
    });
    assert!(has_ended);
}

#[test]
fn connect_blocks_for_tcp_on_iwarp_only() {
    for hosts in Hosts::each() {
        let _listener = hosts.listen(1);
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        hosts.fabric.set_delay(SECOND);
        let begun = channel.now();
        id.connect(client_param()).unwrap();
        let blocked = hosts.choose(Duration::ZERO, 2 * SECOND);
        assert_eq!(channel.now() - begun, blocked);
    }
}

#[test]
fn a_lost_request_is_sent_again() {
    let hosts = Hosts::roce();
    hosts.client.drop_next(MessageKind::Request, 2);
    let listener = hosts.listen(1);
    let channel = hosts.client.channel().unwrap();
    let id = hosts.routed(&channel);
    let begun = channel.now();
    id.connect(client_param()).unwrap();
    let event = listener.channel.next_event(None).unwrap();
    assert_eq!(event.kind(), EventKind::ConnectRequest);
    assert_eq!(channel.now() - begun, Duration::from_millis(2 * 4608));
}

#[test]
fn a_lost_reply_is_sent_again() {
    let Asked {
        hosts,
        client,
        request,
        ..
    } = Hosts::roce().ask(client_param());
    hosts.server.drop_next(MessageKind::Reply, 1);
    let begun = client.channel.now();
    let child = request.into_child().unwrap();
    child.accept(server_param()).unwrap();
    client.expect(EventKind::ConnectResponse);
    let late = client.channel.now() - begun;
    assert_eq!(late, Duration::from_millis(4096));
}

#[test]
fn a_lost_confirmation_is_sent_again() {
    let Asked {
        hosts,
        client,
        request,
        listener,
    } = Hosts::roce().ask(client_param());
    hosts.client.drop_next(MessageKind::ReadyToUse, 1);
    let child = request.into_child().unwrap();
    child.accept(server_param()).unwrap();
    client.expect(EventKind::ConnectResponse);
    let begun = client.channel.now();
    client.id.establish().unwrap();
    let event = listener.channel.next_event(None).unwrap();
    assert_eq!(event.kind(), EventKind::Established);
    let late = client.channel.now() - begun;
    assert_eq!(late, Duration::from_millis(4096));
}

#[test]
fn a_confirmation_that_never_comes_makes_the_client_unreachable() {
    let asked = Hosts::roce().ask(client_param());
    asked.hosts.client.set_responding(false);
    let child = asked.request.into_child().unwrap();
    child.accept(server_param()).unwrap();
    let event = asked.listener.channel.next_event(None).unwrap();
    assert_eq!(event.kind(), EventKind::Unreachable);
}

#[test]
fn a_request_to_disconnect_that_is_not_answered_times_out() {
    let connected = Hosts::roce().connect();
    connected.hosts.server.set_responding(false);
    let client = &connected.client;
    let begun = client.channel.now();
    client.id.disconnect().unwrap();
    client.expect_errno(EventKind::Disconnected, libc::ETIMEDOUT);
    assert_eq!(client.channel.now() - begun, REQUEST_TIMEOUT);
    client.expect(EventKind::TimewaitExit);
    // iWARP does not ask the peer.
    let connected = Hosts::iwarp().connect();
    connected.hosts.server.set_responding(false);
    let client = &connected.client;
    client.id.disconnect().unwrap();
    assert_eq!(client.expect(EventKind::Disconnected).status(), 0);
}

#[test]
fn a_slow_server_is_waited_for() {
    let Asked {
        hosts,
        client,
        request,
        ..
    } = Hosts::roce().ask(client_param());
    // It has acknowledged the request by then.
    hosts.fabric.advance(3 * REQUEST_TIMEOUT);
    assert!(client.channel.try_next_event().unwrap().is_none());
    let child = request.into_child().unwrap();
    child.accept(server_param()).unwrap();
    client.expect(EventKind::ConnectResponse);
    // iWARP waits ten seconds.
    let Asked {
        client, request, ..
    } = Hosts::iwarp().ask(client_param());
    let begun = client.channel.now();
    client.expect_errno(EventKind::Unreachable, libc::ETIMEDOUT);
    assert_eq!(client.channel.now() - begun, 10 * SECOND);
    let child = request.into_child().unwrap();
    errno(child.accept(server_param()), libc::ECONNRESET);
}

#[test]
fn an_iwarp_id_waits_for_its_peer_before_it_goes() {
    for disconnects in [false, true] {
        let asked = Hosts::iwarp().ask(client_param());
        let (channel, id) = (&asked.client.channel, asked.client.id);
        let begun = channel.now();
        if disconnects {
            id.disconnect().unwrap();
        } else {
            drop(id);
        }
        assert_eq!(channel.now() - begun, 10 * SECOND);
    }
}

#[test]
fn messages_take_their_time() {
    let hosts = Hosts::roce();
    hosts.fabric.set_delay(SECOND);
    hosts.server.set_delay(SECOND);
    let listener = hosts.listen(1);
    let channel = hosts.client.channel().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let begun = channel.now();
    id.resolve_addr(None, hosts.address(), 9 * SECOND).unwrap();
    channel.next_event(None).unwrap();
    assert_eq!(channel.now() - begun, 4 * SECOND);
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
    id.connect(client_param()).unwrap();
    let event = listener.channel.next_event(None).unwrap();
    assert_eq!(event.kind(), EventKind::ConnectRequest);
    assert_eq!(channel.now() - begun, 6 * SECOND);
    // A neighbour that answers too late.
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.resolve_addr(None, hosts.address(), SECOND).unwrap();
    expect(&channel, EventKind::AddrError);
}

#[test]
fn loss_delays_connections() {
    let [time, again, without] = [(7, 60), (7, 60), (7, 0)].map(|(seed, percent)| {
        let mut hosts = Hosts::roce();
        hosts.fabric = hosts.fabric.seed(seed);
        hosts.fabric.set_loss(percent);
        let listener = hosts.listen(1);
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        let begun = channel.now();
        id.connect(client_param()).unwrap();
        let request = listener.channel.next_event(None).unwrap();
        let child = request.into_child().unwrap();
        child.accept(server_param()).unwrap();
        let event = channel.next_event(None).unwrap();
        assert_eq!(event.kind(), EventKind::ConnectResponse);
        channel.now() - begun
    });
    assert_eq!(time, again);
    assert!(time > without, "{time:?} {without:?}");
}

#[test]
fn a_full_backlog_delays_or_refuses() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(1);
    let channel = hosts.client.channel().unwrap();
    let ids = [1, 2].map(|number| {
        let id = hosts.routed(&channel);
        id.connect(client_param().qp_number(number)).unwrap();
        id
    });
    let first = listener.next_request();
    assert_eq!(first.conn().unwrap().qp_number, 1);
    assert!(listener.channel.try_next_event().unwrap().is_none());
    // The second is sent again.
    let second = listener.channel.next_event(None).unwrap();
    assert_eq!(second.conn().unwrap().qp_number, 2);
    drop(ids);

    let hosts = Hosts::iwarp();
    let _listener = hosts.listen(1);
    let channel = hosts.client.channel().unwrap();
    let [_first, _second] = [1, 2].map(|number| {
        let id = hosts.routed(&channel);
        id.connect(client_param().qp_number(number)).unwrap();
        id
    });
    expect(&channel, EventKind::Rejected);
}

#[test]
fn a_removed_device_ends_its_ids() {
    for hosts in Hosts::each() {
        let Connected {
            hosts,
            client,
            listener,
            server,
        } = hosts.connect();
        let device = hosts.choose("rxe0", "siw0");
        hosts.server.remove_device(device);
        for _ in 0..2 {
            expect(&listener.channel, EventKind::DeviceRemoval);
        }
        client.expect(EventKind::Disconnected);
        for id in [&listener.id, &server] {
            errno(id.disconnect(), libc::ENXIO);
            errno(id.listen(1), libc::ENXIO);
            errno(id.accept(server_param()), libc::ENXIO);
            errno(id.set_tos(1), libc::ENXIO);
        }
        let late = listener.channel.create_id(PortSpace::TCP).unwrap();
        errno(
            late.bind((hosts.server.address().unwrap(), PORT)),
            libc::ENODEV,
        );
    }
}

#[test]
fn commands_fail_on_request() {
    let hosts = Hosts::roce();
    hosts
        .client
        .fail_next(CommandNumber::CONNECT, 2, libc::ENOMEM);
    let _listener = hosts.listen(1);
    let channel = hosts.client.channel().unwrap();
    let id = hosts.routed(&channel);
    errno(id.connect(client_param()), libc::ENOMEM);
    errno(id.connect(client_param()), libc::ENOMEM);
    id.connect(client_param()).unwrap();
}

#[test]
fn tcp_sends_lost_segments_of_its_handshake_again() {
    for (client, server, seconds) in [(3, 0, 7), (0, 1, 1), (1, 1, 3)] {
        let hosts = Hosts::iwarp();
        let _listener = hosts.listen(1);
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        let kind = MessageKind::TcpHandshake;
        hosts.client.drop_next(kind, client);
        hosts.server.drop_next(kind, server);
        let begun = channel.now();
        id.connect(client_param()).unwrap();
        assert_eq!(channel.now() - begun, seconds * SECOND);
    }
}

#[test]
fn tcp_sends_all_else_until_it_arrives() {
    let set_responding = |host: &Host, is_responding| host.set_responding(is_responding);
    let set_link_up = |host: &Host, is_up| host.set_link_up("siw0", is_up);
    let changes: [fn(&Host, bool); 2] = [set_responding, set_link_up];
    for set in changes {
        let hosts = Hosts::iwarp();
        hosts.client.drop_next(MessageKind::Request, 1);
        hosts.fabric.set_delay(SECOND);
        let listener = hosts.listen(1);
        let channel = hosts.client.channel().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.resolve_addr(None, hosts.address(), 9 * SECOND).unwrap();
        channel.next_event(None).unwrap();
        id.resolve_route(SECOND).unwrap();
        expect(&channel, EventKind::RouteResolved);
        id.connect(client_param()).unwrap();
        // MPA's request is on its way.
        set(&hosts.server, false);
        hosts.fabric.advance(3 * SECOND);
        assert!(listener.channel.try_next_event().unwrap().is_none());
        set(&hosts.server, true);
        let child = listener.next_request().into_child().unwrap();
        // The reply cannot leave.
        set(&hosts.server, false);
        child.accept(server_param()).unwrap();
        hosts.fabric.advance(3 * SECOND);
        assert!(channel.try_next_event().unwrap().is_none());
        set(&hosts.server, true);
        expect(&channel, EventKind::Established);
        expect(&listener.channel, EventKind::Established);
        // Nor can the end of the connection arrive.
        set(&hosts.server, false);
        id.disconnect().unwrap();
        expect(&channel, EventKind::Disconnected);
        hosts.fabric.advance(3 * SECOND);
        assert!(listener.channel.try_next_event().unwrap().is_none());
        set(&hosts.server, true);
        expect(&listener.channel, EventKind::Disconnected);
    }
}

#[test]
fn no_delay_is_too_long() {
    for hosts in Hosts::each() {
        let _listener = hosts.listen(1);
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        hosts.fabric.set_delay(Duration::MAX);
        hosts.server.set_delay(Duration::MAX);
        let late = channel.create_id(PortSpace::TCP).unwrap();
        late.resolve_addr(None, hosts.address(), SECOND).unwrap();
        expect(&channel, EventKind::AddrError);
        if hosts.is_iwarp {
            errno(id.connect(client_param()), libc::ETIMEDOUT);
        } else {
            id.connect(client_param()).unwrap();
            let event = channel.next_event(None).unwrap();
            assert_eq!(event.kind(), EventKind::Unreachable);
        }
    }
}

#[test]
fn a_request_after_a_lost_rejection_is_a_new_one() {
    let Asked {
        hosts,
        client,
        listener,
        request,
    } = Hosts::roce().ask(client_param());
    hosts.server.drop_next(MessageKind::Reject, 1);
    let first = request.into_child().unwrap();
    first.reject(b"first").unwrap();
    let second = listener.channel.next_event(10 * SECOND).unwrap();
    assert_eq!(second.kind(), EventKind::ConnectRequest);
    second.into_child().unwrap().reject(b"second").unwrap();
    let event = client.expect(EventKind::Rejected);
    assert!(event.private_data().starts_with(b"second"));
}

/// The first request is sent again after 4608 ms and acknowledged. From then on each try has
/// 65,536 ms and the 512 ms of the path.
#[test]
fn an_acknowledged_request_has_more_time() {
    let Asked {
        client,
        request: _request,
        ..
    } = Hosts::roce().ask(client_param());
    let begun = client.channel.now();
    client.expect_errno(EventKind::Unreachable, libc::ETIMEDOUT);
    let waited = client.channel.now() - begun;
    assert_eq!(waited, Duration::from_millis(4608 + 15 * (65_536 + 512)));
}

/// That of the network interface. On iWARP, TCP refuses.
#[test]
fn a_peer_without_its_device_has_its_address() {
    for hosts in Hosts::each() {
        hosts.server.remove_device(hosts.choose("rxe0", "siw0"));
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        let begun = channel.now();
        let connected = id.connect(client_param());
        if hosts.is_iwarp {
            errno(connected, libc::ECONNREFUSED);
            assert!(channel.now() - begun < SECOND);
        } else {
            connected.unwrap();
            let event = channel.next_event(None).unwrap();
            assert_eq!(event.kind(), EventKind::Unreachable);
            assert_eq!(channel.now() - begun, REQUEST_TIMEOUT);
        }
    }
}

#[test]
fn the_port_of_a_removed_device_is_free() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(1);
        let wildcard = (Ipv4Addr::UNSPECIFIED, PORT);
        let other = listener.channel.create_id(PortSpace::TCP).unwrap();
        errno(other.bind(wildcard), libc::EADDRNOTAVAIL);
        hosts.server.remove_device(hosts.choose("rxe0", "siw0"));
        let other = listener.channel.create_id(PortSpace::TCP).unwrap();
        other.bind(wildcard).unwrap();
    }
}

#[test]
fn a_hold_that_is_released_early_holds_nothing() {
    let hosts = Hosts::roce();
    drop(hosts.client.hold_next(CommandNumber::CREATE_ID));
    let held = hosts.client.hold_next(CommandNumber::CREATE_ID);
    let channel = hosts.client.channel().unwrap();
    let (issued, is_issued) = mpsc::channel();
    thread::spawn(move || {
        held.wait();
        issued.send(held)
    });
    let creating = thread::spawn(move || channel.create_id(PortSpace::TCP).map(drop));
    let held = is_issued.recv_timeout(PATIENCE).unwrap();
    assert!(!creating.is_finished());
    drop(held);
    creating.join().unwrap().unwrap();
}
