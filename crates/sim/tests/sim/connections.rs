//! Connections from the request to the end.

use std::time::Duration;

use rdmacm_core::{ConnParam, EventKind, Notification, RejectReason};
use rdmacm_sim::{KernelVersion, MessageKind};

use crate::pair::{Asked, CLIENT_QP, Connected, Hosts, client_param, server_param};
use crate::{SECOND, errno, expect};

#[test]
fn either_side_disconnects() {
    for hosts in Hosts::each() {
        let Connected {
            hosts,
            client,
            listener,
            server,
        } = hosts.connect();
        client.id.disconnect().unwrap();
        expect(&listener.channel, EventKind::Disconnected);
        server.disconnect().unwrap();
        client.expect(EventKind::Disconnected);
        if !hosts.is_iwarp {
            client.expect(EventKind::TimewaitExit);
            expect(&listener.channel, EventKind::TimewaitExit);
        }
        client.id.disconnect().unwrap();
        server.disconnect().unwrap();
        assert!(client.channel.try_next_event().unwrap().is_none());
        assert!(listener.channel.try_next_event().unwrap().is_none());
    }
}

#[test]
fn the_sides_learn_of_each_other() {
    for hosts in Hosts::each() {
        let param = ConnParam::new()
            .qp_number(hosts.choose(0x34_5678, CLIENT_QP))
            .responder_resources(3)
            .initiator_depth(5)
            .retry_count(6)
            .rnr_retry_count(7);
        let param = param.private_data(b"hello").unwrap();
        let asked = hosts.ask(param);
        let (hosts, request) = (asked.hosts, asked.request);
        let conn = request.conn().unwrap();
        assert_eq!((conn.responder_resources, conn.initiator_depth), (5, 3));
        let size = hosts.choose(56, 5);
        assert_eq!(request.private_data().len(), size);
        assert!(request.private_data().starts_with(b"hello"));
        if !hosts.is_iwarp {
            assert_eq!((conn.retry_count, conn.rnr_retry_count), (6, 7));
            assert_eq!(conn.qp_number, 0x34_5678);
        }
        let child = request.into_child().unwrap();
        let addresses = (child.local_addr().unwrap(), child.peer_addr().unwrap());
        assert_eq!(addresses.0, Some(hosts.address().into()));
        assert_eq!(addresses.1, asked.client.id.local_addr().unwrap());
        let reply = server_param().responder_resources(7).initiator_depth(9);
        child
            .accept(reply.private_data(b"welcome").unwrap())
            .unwrap();
        let kind = hosts.choose(EventKind::ConnectResponse, EventKind::Established);
        let response = asked.client.expect(kind);
        assert_eq!(response.private_data().len(), hosts.choose(196, 7));
        assert!(response.private_data().starts_with(b"welcome"));
        let conn = response.conn().unwrap();
        let depths = (conn.responder_resources, conn.initiator_depth);
        assert_eq!(depths, hosts.choose((9, 7), (7, 3)));
        if hosts.is_iwarp {
            let event = asked.listener.channel.next_event(SECOND).unwrap();
            let conn = event.conn().unwrap();
            assert_eq!((conn.responder_resources, conn.initiator_depth), (3, 7));
        }
    }
}

#[test]
fn a_rejection_has_a_reason_and_data() {
    for hosts in Hosts::each() {
        let Asked {
            hosts,
            client,
            request,
            ..
        } = hosts.ask(client_param());
        let child = request.into_child().unwrap();
        child.reject(b"not today").unwrap();
        errno(child.reject(&[]), libc::EINVAL);
        errno(child.accept(server_param()), libc::EINVAL);
        let event = client.expect(EventKind::Rejected);
        assert!(event.private_data().starts_with(b"not today"));
        assert_eq!(event.private_data().len(), hosts.choose(148, 9));
        let failure = event.failure().unwrap();
        if hosts.is_iwarp {
            assert_eq!(failure.raw_os_error(), Some(libc::ECONNRESET));
        } else {
            let reason = Some(RejectReason::CONSUMER_DEFINED);
            assert_eq!(failure.reject_reason(), reason);
        }
        // The id is spent.
        errno(client.id.connect(client_param()), libc::EINVAL);
    }
}

#[test]
fn unsupported_options_are_a_reason_of_their_own() {
    let Asked {
        client, request, ..
    } = Hosts::roce().ask(client_param());
    request.into_child().unwrap().reject_ece(&[]).unwrap();
    let event = client.expect(EventKind::Rejected);
    let reason = event.failure().unwrap().reject_reason();
    assert_eq!(reason, Some(RejectReason::VENDOR_OPTION_NOT_SUPPORTED));
}

#[test]
fn the_client_rejects_a_reply() {
    let Asked {
        client,
        request,
        listener,
        ..
    } = Hosts::roce().ask(client_param());
    let child = request.into_child().unwrap();
    child.accept(server_param()).unwrap();
    client.expect(EventKind::ConnectResponse);
    client.id.reject(&[]).unwrap();
    expect(&listener.channel, EventKind::Rejected);
}

#[test]
fn a_dropped_child_rejects() {
    for hosts in Hosts::each() {
        let Asked {
            hosts,
            client,
            request,
            ..
        } = hosts.ask(client_param());
        drop(request);
        let event = client.expect(EventKind::Rejected);
        let status = hosts.choose(28, -libc::ECONNRESET);
        assert_eq!(event.status(), status);
    }
}

#[test]
fn a_dropped_listener_rejects_what_is_unread() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(1);
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        id.connect(client_param()).unwrap();
        drop(listener);
        expect(&channel, EventKind::Rejected);
    }
}

#[test]
fn a_dropped_side_disconnects() {
    for hosts in Hosts::each() {
        let connected = hosts.connect();
        drop(connected.client);
        expect(&connected.listener.channel, EventKind::Disconnected);
    }
    for hosts in Hosts::each() {
        let connected = hosts.connect();
        drop(connected.server);
        connected.client.expect(EventKind::Disconnected);
    }
}

#[test]
fn both_sides_disconnect_at_once() {
    for hosts in Hosts::each() {
        let connected = hosts.connect();
        connected.hosts.fabric.set_delay(SECOND);
        connected.client.id.disconnect().unwrap();
        connected.server.disconnect().unwrap();
        connected.client.expect(EventKind::Disconnected);
        let event = connected.listener.channel.next_event(2 * SECOND).unwrap();
        assert_eq!(event.kind(), EventKind::Disconnected);
    }
}

#[test]
fn an_absent_listener_refuses() {
    let hosts = Hosts::roce();
    let channel = hosts.client.channel().unwrap();
    let id = hosts.routed(&channel);
    id.connect(client_param()).unwrap();
    let event = channel.next_event(SECOND).unwrap();
    let reason = event.failure().unwrap().reject_reason();
    assert_eq!(reason, Some(RejectReason::INVALID_SERVICE_ID));
    errno(id.connect(client_param()), libc::EINVAL);

    let hosts = Hosts::iwarp();
    let channel = hosts.client.channel().unwrap();
    let id = hosts.routed(&channel);
    errno(id.connect(client_param()), libc::ECONNREFUSED);
    // TCP's refusal leaves the id as it was.
    let _listener = hosts.listen(1);
    id.connect(client_param()).unwrap();
}

#[test]
fn an_id_connects_with_a_route_only() {
    for hosts in Hosts::each() {
        let _listener = hosts.listen(1);
        let channel = hosts.client.channel().unwrap();
        let id = channel.create_id(rdmacm_core::PortSpace::TCP).unwrap();
        errno(id.connect(client_param()), libc::EINVAL);
        id.resolve_addr(None, hosts.address(), SECOND).unwrap();
        expect(&channel, EventKind::AddrResolved);
        errno(id.connect(client_param()), libc::EINVAL);
        errno(id.accept(server_param()), libc::EINVAL);
        errno(id.reject(&[]), libc::EINVAL);
        errno(id.disconnect(), libc::EINVAL);
        let result = id.notify(Notification::CommunicationEstablished);
        errno(result, libc::EINVAL);
    }
}

#[test]
fn a_connection_is_not_accepted_or_rejected_again() {
    for hosts in Hosts::each() {
        let Connected {
            hosts,
            client,
            server,
            ..
        } = hosts.connect();
        for id in [&client.id, &server] {
            errno(id.reject(&[]), libc::EINVAL);
            errno(id.accept(server_param()), libc::EINVAL);
            errno(id.connect(client_param()), libc::EINVAL);
            let result = id.notify(Notification::CommunicationEstablished);
            if hosts.is_iwarp {
                result.unwrap();
            } else {
                errno(result, libc::EISCONN);
            }
        }
        errno(client.id.establish(), libc::EINVAL);
        assert!(client.channel.try_next_event().unwrap().is_none());
    }
}

#[test]
fn a_queue_pair_that_receives_establishes_the_connection() {
    let Asked {
        hosts,
        client,
        request,
        listener,
    } = Hosts::roce().ask(client_param());
    let child = request.into_child().unwrap();
    let seen = Notification::CommunicationEstablished;
    errno(child.notify(seen), libc::EINVAL);
    child.accept(server_param()).unwrap();
    client.expect(EventKind::ConnectResponse);
    hosts.client.drop_next(MessageKind::ReadyToUse, 1);
    client.id.establish().unwrap();
    assert!(listener.channel.try_next_event().unwrap().is_none());
    child.notify(seen).unwrap();
    expect(&listener.channel, EventKind::Established);
    child.notify(Notification::PathMigrated).unwrap();
}

#[test]
fn a_queue_pair_number_in_use_is_a_stale_connection() {
    let connected = Hosts::roce().connect();
    let channel = connected.hosts.client.channel().unwrap();
    let again = connected.hosts.routed(&channel);
    again.connect(client_param()).unwrap();
    let event = channel.next_event(SECOND).unwrap();
    let reason = event.failure().unwrap().reject_reason();
    assert_eq!(reason, Some(RejectReason::STALE_CONN));
    // The old connection ends.
    connected.client.expect(EventKind::Disconnected);
    connected.client.id.disconnect().unwrap();
    expect(&connected.listener.channel, EventKind::Disconnected);
}

#[test]
fn a_client_that_gives_up_is_noticed_by_accept() {
    let Asked {
        client, request, ..
    } = Hosts::roce().ask(client_param());
    drop(client);
    let child = request.into_child().unwrap();
    errno(child.accept(server_param()), libc::EINVAL);

    let asked = Hosts::iwarp().ask(client_param());
    // The id waits for the peer's answer until MPA gives up.
    drop(asked.client);
    let child = asked.request.into_child().unwrap();
    errno(child.accept(server_param()), libc::ECONNRESET);
}

#[test]
fn timewait_lasts_longer_on_an_old_kernel() {
    for (version, milliseconds) in [
        (KernelVersion::Linux7_3, 512),
        (KernelVersion::Linux6_1, 2048),
    ] {
        let mut hosts = Hosts::roce();
        hosts.client = hosts.client.kernel_version(version);
        let Connected { client, server, .. } = hosts.connect();
        let begun = client.channel.now();
        client.id.disconnect().unwrap();
        server.disconnect().unwrap();
        client.expect(EventKind::Disconnected);
        assert_eq!(client.channel.now(), begun);
        client.expect(EventKind::TimewaitExit);
        let timewait = client.channel.now() - begun;
        assert_eq!(timewait, Duration::from_millis(milliseconds));
    }
}

#[test]
fn private_data_is_limited() {
    let Asked {
        client, request, ..
    } = Hosts::roce().ask(client_param().private_data(&[7; 56]).unwrap());
    assert_eq!(request.private_data(), [7; 56]);
    let child = request.into_child().unwrap();
    let param = server_param().private_data(&[8; 196]).unwrap();
    child.accept(param).unwrap();
    let event = client.expect(EventKind::ConnectResponse);
    assert_eq!(event.private_data(), [8; 196]);

    let Asked {
        hosts: _hosts,
        client,
        request,
        ..
    } = Hosts::iwarp().ask(client_param().private_data(&[7; 251]).unwrap());
    assert_eq!(request.private_data(), [7; 251]);
    let child = request.into_child().unwrap();
    let param = server_param().private_data(&[8; 251]).unwrap();
    child.accept(param).unwrap();
    let event = client.expect(EventKind::Established);
    assert_eq!(event.private_data(), [8; 251]);
}

#[test]
fn a_host_connects_to_itself() {
    for mut hosts in Hosts::each() {
        hosts.client = hosts.server.clone();
        let connected = hosts.connect();
        drop(connected.client);
        expect(&connected.listener.channel, EventKind::Disconnected);
    }
}

#[test]
fn over_iwarp_a_used_queue_pair_fails_with_the_reply() {
    let Connected {
        hosts,
        client,
        listener,
        server: _server,
    } = Hosts::iwarp().connect();
    client.id.disconnect().unwrap();
    client.expect(EventKind::Disconnected);
    expect(&listener.channel, EventKind::Disconnected);
    let id = hosts.routed(&client.channel);
    // There is no such queue pair.
    errno(id.connect(client_param().qp_number(999)), libc::EINVAL);
    id.connect(client_param()).unwrap();
    let child = listener.next_request().into_child().unwrap();
    // `ACCEPT` would refuse a used one at once.
    let unused = server_param().qp_number(1);
    child.accept(unused).unwrap();
    client.expect_errno(EventKind::ConnectError, libc::EINVAL);
    expect(&listener.channel, EventKind::Established);
    expect(&listener.channel, EventKind::Disconnected);
}
