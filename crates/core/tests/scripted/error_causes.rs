//! The error of a refused command names the likely cause, in words.

use std::net::{Ipv6Addr, SocketAddrV6};
use std::time::Duration;

use rdmacm_core::{
    CmAddr, CmId, CommandNumber as N, ConnParam, Error, Family, IbAddr, IbService, JoinFlags,
    Notification, PathData, PortSpace, QpState, Result,
};

use crate::Fixture;

/// Each of these numbers, as the answer to this command, has a cause with these words, or none if
/// there are no words.
#[track_caller]
fn assert_causes(number: N, call: impl Fn(&CmId) -> Result<()>, causes: &[(i32, &str)]) {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::UDP);
    for (errno, words) in causes {
        fixture.ucma.refuse(number, *errno);
        let error = call(&id).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(*errno));
        let Error::Command(refused) = &error else {
            panic!("{error:?}")
        };
        match refused.cause() {
            Some(cause) => {
                let is_this = !words.is_empty() && cause.contains(words);
                assert!(is_this, "{errno}: {cause}");
            }
            None => assert_eq!(*words, "", "{errno}: {error}"),
        }
    }
}

fn v4(port: u16) -> CmAddr {
    CmAddr::from(([10, 0, 0, 9], port))
}

fn link_local(scope_id: u32) -> CmAddr {
    let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    SocketAddrV6::new(ip, 7, 0, scope_id).into()
}

fn native() -> CmAddr {
    CmAddr::from("[fe80::1]".parse::<IbAddr>().unwrap())
}

#[test]
fn errors_of_any_command_name_their_cause() {
    assert_causes(
        N::LISTEN,
        |id| id.listen(1),
        &[
            (libc::ENXIO, "device of this id is gone"),
            (libc::ENOENT, "does not know this id"),
            (libc::EACCES, "credentials have changed"),
            (libc::EIO, ""),
        ],
    );
}

#[test]
fn errors_of_binding_name_their_cause() {
    let bind = |address: CmAddr| move |id: &CmId| id.bind(address);
    assert_causes(
        N::BIND,
        bind(v4(7)),
        &[
            (libc::EADDRNOTAVAIL, "shares its port"),
            (libc::EADDRINUSE, "another id has"),
            (libc::EPROTONOSUPPORT, "port space"),
            (libc::ENODEV, "no RDMA device serves it"),
            (libc::ENODEV, "an earlier bind of this id was refused"),
            (libc::EINVAL, "bound already"),
            (libc::EACCES, "CAP_NET_BIND_SERVICE"),
        ],
    );
    let unprivileged = [(libc::EACCES, "this process's credentials have changed")];
    assert_causes(N::BIND, bind(v4(1024)), &unprivileged);
    assert_causes(N::BIND, bind(v4(0)), &unprivileged);
    assert_causes(N::BIND, bind(v4(1023)), &[(libc::EACCES, "below 1024")]);
    assert_causes(N::BIND, bind(v4(0)), &[(libc::EADDRNOTAVAIL, "ephemeral")]);
    assert_causes(N::BIND, bind(native()), &[(libc::ENODEV, "this GID")]);
    assert_causes(N::BIND, bind(link_local(2)), &[(libc::ENODEV, "scope id")]);
    assert_causes(
        N::BIND,
        bind(link_local(0)),
        &[(libc::EINVAL, "needs a scope id")],
    );
}

#[test]
fn errors_of_resolving_an_address_name_their_cause() {
    let resolve = |source: Option<CmAddr>, destination: CmAddr| {
        move |id: &CmId| id.resolve_addr(source, destination, Duration::from_secs(1))
    };
    let number = N::RESOLVE_ADDR;
    assert_causes(
        number,
        resolve(None, v4(7)),
        &[
            (libc::ENETUNREACH, "no route"),
            (libc::EHOSTUNREACH, "unreachable host"),
            (libc::EADDRINUSE, "source address and port"),
            (libc::EADDRNOTAVAIL, "no ephemeral port"),
            (libc::EPROTONOSUPPORT, "port space"),
            (libc::ENODEV, "serves the interface that leads"),
            (libc::EINVAL, "has resolved already"),
            (libc::EACCES, "a route prohibits it"),
            (libc::EIO, ""),
        ],
    );
    let from = resolve(Some(v4(7)), v4(7));
    assert_causes(number, from, &[(libc::EADDRNOTAVAIL, "the source address")]);
    assert_causes(number, from, &[(libc::ENODEV, "serves the source address")]);
    assert_causes(number, from, &[(libc::EACCES, "below 1024")]);
    let device = |words| [(libc::ENODEV, words)];
    assert_causes(
        number,
        resolve(None, native()),
        &device("subnet and partition"),
    );
    assert_causes(
        number,
        resolve(Some(native()), native()),
        &device("this GID"),
    );
    assert_causes(number, resolve(None, link_local(2)), &device("scope id"));
    let scope = [(libc::EINVAL, "needs a scope id")];
    assert_causes(number, resolve(None, link_local(0)), &scope);
    assert_causes(number, resolve(Some(link_local(0)), link_local(2)), &scope);
    let resolved = [(libc::EINVAL, "has resolved already")];
    assert_causes(
        number,
        resolve(Some(link_local(2)), link_local(2)),
        &resolved,
    );
    let loopback = [(libc::EINVAL, "no RDMA device has a loopback")];
    assert_causes(number, resolve(None, ([127, 0, 0, 1], 7).into()), &loopback);
    assert_causes(number, resolve(None, CmAddr::any(Family::V4)), &loopback);
}

#[test]
fn errors_of_resolving_a_route_and_listening_name_their_cause() {
    assert_causes(
        N::RESOLVE_ROUTE,
        |id| id.resolve_route(Duration::from_secs(1)),
        &[
            (libc::EINVAL, "no resolved address"),
            (libc::ENODEV, "carries the route"),
            (libc::EIO, ""),
        ],
    );
    assert_causes(
        N::LISTEN,
        |id| id.listen(1),
        &[
            (libc::EINVAL, "listens already"),
            (libc::EADDRINUSE, "the port is taken"),
            (libc::EADDRNOTAVAIL, "has a wildcard address"),
            (libc::EADDRNOTAVAIL, "no ephemeral port"),
            (libc::EADDRNOTAVAIL, "no longer has the address"),
            (libc::EIO, ""),
        ],
    );
}

#[test]
fn errors_of_connecting_and_accepting_name_their_cause() {
    assert_causes(
        N::CONNECT,
        |id| id.connect(ConnParam::new()),
        &[
            (libc::EINVAL, "route is not resolved"),
            (libc::ENOENT, "partition key"),
            (libc::ECONNREFUSED, "no server listens"),
            (libc::ETIMEDOUT, "did not answer"),
            (libc::ENETUNREACH, "no route"),
            (libc::EHOSTUNREACH, "the neighbour does not answer"),
            (
                libc::EADDRINUSE,
                "TCP socket already uses this id's source port",
            ),
            (
                libc::EADDRNOTAVAIL,
                "from this id's source port to the peer",
            ),
            (libc::EADDRNOTAVAIL, "no longer has the source address"),
            (libc::ENOMEM, "out of memory"),
            (libc::EIO, ""),
        ],
    );
    assert_causes(
        N::ACCEPT,
        |id| id.accept(ConnParam::new()),
        &[
            (libc::EINVAL, "brought no request"),
            (libc::ECONNRESET, "has gone"),
            (libc::ENOMEM, "out of memory"),
            (libc::EIO, ""),
        ],
    );
    let nothing = (libc::EIO, "");
    let awaits = (libc::EINVAL, "no response of a peer");
    assert_causes(N::ACCEPT, |id| id.establish(), &[awaits, nothing]);
    let refuses = (libc::EINVAL, "nothing to refuse");
    assert_causes(N::REJECT, |id| id.reject(b""), &[refuses, nothing]);
    let not_connected = (libc::EINVAL, "not begun to connect");
    assert_causes(
        N::DISCONNECT,
        |id| id.disconnect(),
        &[not_connected, nothing],
    );
}

#[test]
fn errors_of_queue_pair_commands_name_their_cause() {
    assert_causes(
        N::NOTIFY,
        |id| id.notify(Notification::CommunicationEstablished),
        &[
            (libc::EISCONN, "established already"),
            (libc::EINVAL, "not come that far"),
            (libc::EIO, ""),
        ],
    );
    assert_causes(
        N::INIT_QP_ATTR,
        |id| id.init_qp_attr(QpState::RTR).map(drop),
        &[
            (libc::EINVAL, "attached to no device"),
            (libc::ENOENT, "partition key"),
            (libc::EIO, ""),
        ],
    );
}

#[test]
fn errors_of_joining_a_group_name_their_cause() {
    let join =
        |group: CmAddr| move |id: &CmId| id.join_multicast(group, JoinFlags::FULL_MEMBER).map(drop);
    let group = ([239, 1, 1, 1], 0).into();
    assert_causes(
        N::JOIN_MCAST,
        join(group),
        &[
            (libc::EINVAL, "must be for datagrams"),
            (libc::ENOSYS, "iWARP has no multicast"),
            (524, "IPv4 groups alone"),
            (libc::EIO, ""),
        ],
    );
    let wildcard = [(libc::EINVAL, "a wildcard asks")];
    assert_causes(N::JOIN_MCAST, join(CmAddr::any(Family::V4)), &wildcard);
}

#[test]
fn errors_of_service_commands_name_their_cause() {
    assert_causes(
        N::QUERY,
        |id| id.ib_service_records().map(drop),
        &[
            (libc::EOPNOTSUPP, "only InfiniBand"),
            (libc::EINVAL, "attached to no device"),
            (libc::ENODATA, "no service is resolved"),
            (libc::EIO, ""),
        ],
    );
    let only = [(libc::EOPNOTSUPP, "only InfiniBand")];
    let service = IbService::with_id(1);
    assert_causes(
        N::RESOLVE_IB_SERVICE,
        |id| id.resolve_ib_service(service).map(drop),
        &only,
    );
}

#[test]
fn errors_of_options_name_their_cause() {
    let none = (libc::ENOSYS, "does not know the option");
    let (tos, late) = ((libc::EINVAL, ""), |words| (libc::EINVAL, words));
    let number = N::SET_OPTION;
    assert_causes(number, |id| id.set_tos(1), &[tos]);
    let listens = late("listens already");
    assert_causes(number, |id| id.set_reuse_addr(true), &[none, listens]);
    let bound = late("before the id is bound");
    assert_causes(number, |id| id.set_reuse_addr(false), &[none, bound]);
    let begun = late("not begun to resolve");
    assert_causes(number, |id| id.set_af_only(true), &[none, begun]);
    let reliable = late("reliable connected");
    assert_causes(
        number,
        |id| id.set_ack_timeout(1),
        &[none, reliable, (libc::EIO, "")],
    );
    let primary = late("primary, bidirectional");
    let path = crate::options::path(PathData::USABLE, 1);
    let route = (libc::ENODEV, "carries the route");
    let set_path = |id: &CmId| id.set_ib_path(&[path]);
    assert_causes(number, set_path, &[none, primary, route]);
}

#[test]
fn errors_of_migrating_and_creating_an_id_name_their_cause() {
    let fixture = Fixture::new();
    let (id, other) = (fixture.id(PortSpace::TCP), Fixture::new());
    for (errno, words) in [
        (libc::EINVAL, "not on the channel"),
        (libc::ENOENT, "not on the kernel's file"),
        (libc::EIO, "EIO: In"),
    ] {
        other.ucma.refuse(N::MIGRATE_ID, errno);
        let error = id.migrate(&other.channel).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        fixture.ucma.refuse(N::CREATE_ID, errno);
        let error = fixture.channel.create_id(PortSpace::TCP).unwrap_err();
        let knows = error.to_string().contains("does not know this port space");
        assert_eq!(knows, errno == libc::EINVAL, "{error}");
    }
}
