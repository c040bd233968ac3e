//! Listeners: stopping them, and what ends them.

use std::io::ErrorKind;
use std::thread;

use rdmacm::core::{CommandNumber, PortSpace, QpState};
use rdmacm::{Cause, Listener, Stage};

use crate::hosts::{Hosts, SECOND, Server, node};

#[test]
fn a_stop_handle_wakes_all_waiters() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let stop = listener.stop_handle();
        thread::scope(|scope| {
            let waiting = [(); 3].map(|()| scope.spawn(|| listener.accept(None).unwrap_err()));
            stop.stop();
            for error in waiting.map(|waiting| waiting.join().unwrap()) {
                assert!(error.is_stopped() && error.ends_listener(), "{error}");
                assert_eq!(error.stage(), Stage::WaitForRequest);
            }
        });
        assert_eq!(listener.incoming().count(), 0);
        drop(listener);
        stop.stop();
        hosts.assert_server_is_clean();
    }
}

#[test]
fn a_stopped_listener_rejects_peers() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        let stopped = hosts.listen(&server);
        stopped.stop();
        let other = Listener::options().with_node(&server);
        let other = other.bind((hosts.server.address().unwrap(), 7472)).unwrap();
        let client = node(&hosts.client);
        thread::scope(|scope| {
            scope.spawn(|| other.accept(None).unwrap_err());
            let connector = hosts.connector(&client);
            let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
            assert!(error.is_rejected(), "{error}");
            other.stop();
        });
        hosts.assert_client_is_clean();
    }
}

/// As after `setuid(2)`: the event stays unread, and whoever asked on would ask for ever.
#[test]
fn other_credentials_end_a_listener() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let mut incoming = listener.incoming();
        let refused = CommandNumber::GET_EVENT;
        hosts.server.fail_next(refused, usize::MAX, libc::EACCES);
        let client = node(&hosts.client);
        let connector = hosts.connector(&client).deadline(SECOND);
        thread::scope(|scope| {
            let connecting = scope.spawn(|| connector.connect_with(&hosts.client_pairs));
            let error = incoming.next().unwrap().unwrap_err();
            assert!(error.ends_listener(), "{error}");
            assert!(incoming.next().is_none());
            connecting.join().unwrap().unwrap_err();
        });
    }
}

#[test]
fn a_failed_read_does_not_end_a_listener() {
    for hosts in Hosts::each() {
        for errno in [libc::ENOMEM, libc::EFAULT, libc::EIO] {
            let listener = hosts.listen(&node(&hosts.server));
            let mut incoming = listener.incoming();
            hosts.server.fail_next(CommandNumber::GET_EVENT, 1, errno);
            let client = node(&hosts.client);
            thread::scope(|scope| {
                let connecting = scope.spawn(|| {
                    let connector = hosts.connector(&client);
                    connector.connect_with(&hosts.client_pairs)
                });
                let error = incoming.next().unwrap().unwrap_err();
                assert!(!error.ends_listener(), "{error}");
                assert_eq!(error.stage(), Stage::WaitForRequest);
                assert_eq!(error.raw_os_error(), Some(errno));
                let request = incoming.next().unwrap().unwrap();
                let accepted = request.accept_with(&hosts.server_pairs).unwrap();
                connecting.join().unwrap().unwrap();
                drop(accepted);
            });
            drop(listener);
            hosts.assert_server_is_clean();
        }
    }
}

#[test]
fn a_failed_accept_does_not_end_a_listener() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let mut incoming = listener.incoming();
        hosts
            .server
            .fail_next(CommandNumber::ACCEPT, 1, libc::ENOMEM);
        let client = node(&hosts.client);
        let connect = || hosts.connector(&client).connect_with(&hosts.client_pairs);
        thread::scope(|scope| {
            let connecting = scope.spawn(connect);
            let request = incoming.next().unwrap().unwrap();
            let error = request.accept_with(&hosts.server_pairs).unwrap_err();
            assert!(!error.ends_listener(), "{error}");
            assert!(connecting.join().unwrap().unwrap_err().is_rejected());
            let connecting = scope.spawn(connect);
            let request = incoming.next().unwrap().unwrap();
            let accepted = request.accept_with(&hosts.server_pairs).unwrap();
            connecting.join().unwrap().unwrap();
            drop(accepted);
        });
    }
}

/// The kernel would sleep for the host's answer when the queue pair moves to RTR.
#[test]
fn a_peer_whose_host_does_not_answer_is_unreachable() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    let connect = || hosts.connector(&client).connect_with(&hosts.client_pairs);
    thread::scope(|scope| {
        let connecting = scope.spawn(connect);
        let request = listener.accept(None).unwrap();
        hosts.client.set_link_up("rxe0", false);
        let error = request.accept_with(&hosts.server_pairs).unwrap_err();
        assert_eq!(error.stage(), Stage::Accept);
        assert!(error.is_unreachable(), "{error}");
        assert!(!error.ends_listener(), "{error}");
        assert!(error.elapsed() <= 4 * SECOND, "{error}");
        connecting.join().unwrap().unwrap_err();
    });
}

/// Nor is one without an answer refused: the kernel asks again where it needs the host.
#[test]
fn a_host_that_has_answered_of_late_is_not_asked_again() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    let connect_once = || {
        thread::scope(|scope| {
            let connect = || hosts.connector(&client).connect_with(&hosts.client_pairs);
            let connecting = scope.spawn(connect);
            let request = listener.accept(None).unwrap();
            drop(request.accept_with(&hosts.server_pairs).unwrap());
            drop(connecting.join().unwrap());
        });
    };
    let refuse_next = || {
        let command = CommandNumber::RESOLVE_IP;
        hosts.server.fail_next(command, 1, libc::EIO);
    };
    let is_refused = || {
        let channel = hosts.server.channel().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        let resolved = id.resolve_addr(None, hosts.address(), SECOND);
        resolved.err().and_then(|error| error.raw_os_error()) == Some(libc::EIO)
    };
    refuse_next();
    connect_once();
    assert!(!is_refused(), "the server has asked");
    connect_once();
    refuse_next();
    connect_once();
    assert!(is_refused(), "the server has not asked again");
}

#[test]
fn removing_the_device_ends_a_listener() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        thread::scope(|scope| {
            let other = scope.spawn(|| listener.accept(None).unwrap_err());
            let mut incoming = listener.incoming();
            hosts.server.remove_device(hosts.device());
            let error = incoming.next().unwrap().unwrap_err();
            assert!(matches!(error.cause(), Cause::Event(_)), "{error}");
            assert!(error.ends_listener() && !error.is_stopped());
            assert!(incoming.next().is_none());
            assert!(other.join().unwrap().ends_listener());
        });
        drop(listener);
        hosts.assert_server_is_clean();
    }
}

#[test]
fn removing_a_device_does_not_end_a_listener_on_all_addresses() {
    for hosts in Hosts::each() {
        let listener = Listener::options().with_node(&node(&hosts.server));
        let listener = listener.bind("0.0.0.0:7471").unwrap();
        hosts.server.remove_device(hosts.device());
        let error = listener.accept(10 * SECOND).unwrap_err();
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        assert!(!error.ends_listener());
    }
}

#[test]
fn a_port_is_occupied() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        let first = hosts.listen(&server);
        let bind = || Listener::options().with_node(&server).bind(hosts.address());
        let error = bind().unwrap_err();
        assert_eq!(error.stage(), Stage::Listen);
        assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE), "{error}");
        drop(first);
        if hosts.is_iwarp() {
            hosts.server.occupy_tcp_port(crate::hosts::PORT);
            let error = bind().unwrap_err();
            assert_eq!(error.stage(), Stage::Listen);
            assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE), "{error}");
        } else {
            bind().unwrap();
        }
        hosts.assert_server_is_clean();
    }
}

#[test]
fn requests_that_are_queued_are_rejected_with_the_listener() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        let listener = hosts.listen(&server);
        let client = node(&hosts.client);
        thread::scope(|scope| {
            let connecting = scope.spawn(|| {
                let connector = hosts.connector(&client).deadline(60 * SECOND);
                connector.connect_with(&hosts.client_pairs).unwrap_err()
            });
            while hosts.server.id_count() < 2 {
                thread::yield_now();
            }
            drop(listener);
            let error = connecting.join().unwrap();
            assert!(error.is_rejected(), "{error}");
        });
        hosts.assert_client_is_clean();
        hosts.assert_server_is_clean();
        Server::start(&hosts).stop();
    }
}

/// The kernel would take it for the wildcard, and let any host connect.
#[test]
fn a_loopback_address_is_refused() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        for address in ["127.0.0.1:7471", "127.8.8.8:0", "[::1]:7471"] {
            let bound = Listener::options().with_node(&server).bind(address);
            let error = bound.unwrap_err();
            assert!(matches!(error.cause(), Cause::LoopbackAddress), "{error}");
            assert_eq!(error.stage(), Stage::Listen);
            assert_eq!(std::io::Error::from(error).kind(), ErrorKind::InvalidInput);
        }
        hosts.assert_server_is_clean();
    }
}

/// The kernel reports a port that is taken by another number if an address is a wildcard.
#[test]
fn another_port_is_tried_if_the_other_family_has_the_first_one() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        for errno in [libc::EADDRINUSE, libc::EADDRNOTAVAIL] {
            hosts.server.fail_next(CommandNumber::LISTEN, 2, errno);
            let bound = Listener::options().with_node(&server).bind("[::]:0");
            assert_ne!(bound.unwrap().local_addr().port(), 0);
        }
        hosts.assert_server_is_clean();
    }
}

/// The kernel gives the id of a request none of the listener's options.
#[test]
fn an_accepted_connection_has_the_listeners_ack_timeout() {
    let hosts = Hosts::roce();
    let server = node(&hosts.server);
    let options = Listener::options().with_node(&server).ack_timeout(12);
    let listener = options.bind(hosts.address()).unwrap();
    let [_client, server] = hosts.connect(&node(&hosts.client), &listener);
    let attributes = server.id().init_qp_attr(QpState::RTS).unwrap();
    assert_eq!(attributes.timeout, 12);
}
