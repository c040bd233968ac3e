//! Commands that fail, each with the error numbers that the kernel returns for it: the error
//! names the stage, the command and the number, and nothing is left behind.

use std::sync::Arc;
use std::thread;

use libc::{
    EADDRINUSE, EADDRNOTAVAIL, EAGAIN, ECONNREFUSED, EHOSTUNREACH, EINVAL, ENETUNREACH, ENODEV,
    ENOMEM, ENXIO, EPERM, ETIMEDOUT,
};
use rdmacm::core::{CommandNumber, ConnParam};
use rdmacm::{
    BlockingExecutor, CLOSE_DEADLINE, Cause, Connector, Error, Listener, Node, Stage, addrinfo,
};

use crate::hosts::{Hosts, Server, channel, node};

type Failures = (CommandNumber, &'static [i32]);

/// What connecting to an IP address executes before the handshake, with the stage.
const RESOLVING: [(Stage, Failures); 4] = [
    (
        Stage::Bind,
        (CommandNumber::CREATE_ID, &[ENOMEM, EPERM, EINVAL]),
    ),
    (
        Stage::ResolveAddress,
        (
            CommandNumber::RESOLVE_IP,
            &[
                ENETUNREACH,
                EHOSTUNREACH,
                ENODEV,
                EADDRNOTAVAIL,
                EADDRINUSE,
                EINVAL,
                ENOMEM,
                EAGAIN,
            ],
        ),
    ),
    (
        Stage::ResolveRoute,
        (
            CommandNumber::RESOLVE_ROUTE,
            &[EINVAL, ENOMEM, ENODEV, ENXIO],
        ),
    ),
    (
        Stage::QueuePair,
        (
            CommandNumber::INIT_QP_ATTR,
            &[EINVAL, ENODEV, ENOMEM, ENXIO],
        ),
    ),
];

/// `CONNECT` of RoCE, and of iWARP, which performs the TCP handshake.
const CONNECT: [Failures; 2] = [
    (CommandNumber::CONNECT, &[EINVAL, ENOMEM, ENXIO]),
    (
        CommandNumber::CONNECT,
        &[EINVAL, ENOMEM, ENXIO, ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT],
    ),
];

const LISTENING: [Failures; 3] = [
    (CommandNumber::CREATE_ID, &[ENOMEM, EPERM]),
    (
        CommandNumber::BIND_IP,
        &[EADDRINUSE, EADDRNOTAVAIL, libc::EACCES, ENODEV, ENOMEM],
    ),
    (CommandNumber::LISTEN, &[EADDRINUSE, EINVAL, ENOMEM]),
];

#[track_caller]
fn assert_refused(error: &Error, stage: Stage, command: CommandNumber, errno: i32) {
    let context = format!("{command:?} {errno}: {error}");
    assert_eq!(error.stage(), stage, "{context}");
    assert_eq!(error.raw_os_error(), Some(errno), "{context}");
    assert!(matches!(error.cause(), Cause::Refused(_)), "{context}");
    assert!(
        error.to_string().contains(&format!("{command:?}: E")),
        "{context}"
    );
}

#[test]
fn connecting() {
    for hosts in Hosts::each() {
        let server = Server::start(&hosts);
        let client = node(&hosts.client);
        let connect = || hosts.connector(&client).connect_with(&hosts.client_pairs);
        let handshake = (Stage::Connect, CONNECT[usize::from(hosts.is_iwarp())]);
        for (stage, (command, errnos)) in RESOLVING.into_iter().chain([handshake]) {
            for errno in errnos {
                hosts.client.fail_next(command, 1, *errno);
                assert_refused(&connect().unwrap_err(), stage, command, *errno);
                hosts.assert_client_is_clean();
            }
            drop(connect().unwrap());
            hosts.assert_client_is_clean();
        }
        server.stop();
        hosts.assert_server_is_clean();
    }
}

#[test]
fn the_next_state_of_the_queue_pair() {
    // Of RTR, for which the reply has the attributes. An EINVAL is the peer's doing.
    let hosts = Hosts::roce();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    let establishing = [CommandNumber::INIT_QP_ATTR, CommandNumber::ACCEPT];
    for (command, errno) in establishing
        .into_iter()
        .flat_map(|command| [EINVAL, ENXIO, ENOMEM].map(|errno| (command, errno)))
    {
        let error = thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                let incoming = listener.accept(None).unwrap();
                // The client has sent its request: what it executes next is of the reply.
                hosts.client.fail_next(command, 1, errno);
                incoming.accept_with(&hosts.server_pairs)
            });
            let error = hosts.connector(&client).connect_with(&hosts.client_pairs);
            let error = error.unwrap_err();
            let accepted = accepting.join().unwrap();
            let rejected = accepted.expect_err("the client rejects the reply");
            // An event, as is what ends a listener.
            assert!(matches!(rejected.cause(), Cause::Event(_)), "{rejected}");
            assert!(!rejected.ends_listener(), "{rejected}");
            error
        });
        assert_eq!(error.stage(), Stage::Connect, "{error}");
        if errno == ENOMEM {
            assert_refused(&error, Stage::Connect, command, errno);
        } else {
            assert!(
                matches!(error.cause(), Cause::PeerGone),
                "{command:?} {error}"
            );
        }
        hosts.assert_client_is_clean();
    }
    hosts.connect(&client, &listener);
}

/// As that of a runtime that shuts down.
#[derive(Debug)]
struct Dropping;

impl BlockingExecutor for Dropping {
    fn spawn(&self, task: Box<dyn FnOnce() + Send>) {
        drop(task);
    }
}

#[test]
fn an_executor_that_drops_a_command_is_no_deadline() {
    let hosts = Hosts::iwarp();
    let _listener = hosts.listen(&node(&hosts.server));
    let options = Node::options().channel(channel(&hosts.client));
    let client = options.executor(Arc::new(Dropping)).open().unwrap();
    let connector = hosts.connector(&client).deadline(None);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    assert_eq!(error.stage(), Stage::Connect);
    assert!(matches!(error.cause(), Cause::CommandDropped), "{error}");
    let connector = Connector::new("localhost:7471").with_node(&client);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    let Cause::Name(addrinfo::Error::LookupDropped) = error.cause() else {
        panic!("{error:?}");
    };
    hosts.assert_client_is_clean();
}

#[test]
fn queries_of_an_error_are_not_needed() {
    for hosts in Hosts::each() {
        let client = node(&hosts.client);
        for query in [CommandNumber::QUERY_ROUTE, CommandNumber::QUERY] {
            hosts.client.fail_next(query, 1000, ENOMEM);
        }
        let error = hosts.connector(&client).connect_with(&hosts.client_pairs);
        let error = error.unwrap_err();
        assert!(error.is_rejected(), "{error}");
        assert_eq!(error.address(), Some(hosts.address().into()));
        hosts.assert_client_is_clean();
    }
}

#[test]
fn listening() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        let bind = || Listener::options().with_node(&server).bind(hosts.address());
        for (command, errnos) in LISTENING {
            for errno in errnos {
                hosts.server.fail_next(command, 1, *errno);
                assert_refused(&bind().unwrap_err(), Stage::Listen, command, *errno);
                hosts.assert_server_is_clean();
            }
            drop(bind().unwrap());
            hosts.assert_server_is_clean();
        }
    }
}

#[test]
fn accepting() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        for errno in [EINVAL, ENOMEM, ENXIO, libc::ECONNRESET] {
            hosts.server.fail_next(CommandNumber::ACCEPT, 1, errno);
            let error = thread::scope(|scope| {
                let connecting = scope.spawn(|| {
                    let error = hosts.connector(&client).connect_with(&hosts.client_pairs);
                    error.unwrap_err()
                });
                let incoming = listener.accept(None).unwrap();
                let error = incoming.accept_with(&hosts.server_pairs).unwrap_err();
                assert!(connecting.join().unwrap().is_rejected());
                error
            });
            let is_peers = match errno {
                EINVAL => !hosts.is_iwarp(),
                errno => errno != ENOMEM,
            };
            if is_peers {
                assert_eq!(error.stage(), Stage::Accept);
                assert!(matches!(error.cause(), Cause::PeerGone), "{error}");
            } else {
                assert_refused(&error, Stage::Accept, CommandNumber::ACCEPT, errno);
            }
            hosts.assert_client_is_clean();
            hosts.assert_left(&hosts.server, 1, &hosts.server_pairs, 0);
        }
        hosts.connect(&client, &listener);
    }
}

#[test]
fn querying_the_address_of_a_peer() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        thread::scope(|scope| {
            scope.spawn(|| {
                let error = hosts.connector(&client).connect_with(&hosts.client_pairs);
                assert!(error.unwrap_err().is_rejected());
            });
            let incoming = listener.accept(None).unwrap();
            for query in [CommandNumber::QUERY_ROUTE, CommandNumber::QUERY] {
                hosts.server.fail_next(query, 1000, ENOMEM);
            }
            let error = incoming.peer_addr().unwrap_err();
            assert_eq!(error.stage(), Stage::Accept);
            assert_eq!(error.raw_os_error(), Some(ENOMEM), "{error}");
        });
    }
}

#[test]
fn rejecting() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        for errno in [EINVAL, ENOMEM] {
            hosts.server.fail_next(CommandNumber::REJECT, 1, errno);
            thread::scope(|scope| {
                let connecting = scope.spawn(|| {
                    let error = hosts.connector(&client).connect_with(&hosts.client_pairs);
                    error.unwrap_err()
                });
                let error = listener.accept(None).unwrap().reject(b"no").unwrap_err();
                assert_refused(&error, Stage::Reject, CommandNumber::REJECT, errno);
                // Without the data.
                let error = connecting.join().unwrap();
                assert!(
                    error.is_rejected() && error.private_data().is_empty(),
                    "{error}"
                );
            });
            hosts.assert_left(&hosts.server, 1, &hosts.server_pairs, 0);
        }
    }
}

#[test]
fn disconnecting() {
    for hosts in Hosts::each() {
        let server = Server::start(&hosts);
        let client = node(&hosts.client);
        for errno in [EINVAL, ENOMEM, ENXIO] {
            let connection = hosts.connector(&client).param(ConnParam::new());
            let connection = connection.connect_with(&hosts.client_pairs).unwrap();
            hosts.client.fail_next(CommandNumber::DISCONNECT, 1, errno);
            let closed = connection.close(CLOSE_DEADLINE);
            if errno == ENOMEM {
                let error = closed.unwrap_err();
                assert_refused(&error, Stage::Close, CommandNumber::DISCONNECT, errno);
            } else {
                // The peer has disconnected already, or the device is gone.
                closed.unwrap();
            }
            drop(connection);
            hosts.assert_client_is_clean();
        }
        server.stop();
    }
}
