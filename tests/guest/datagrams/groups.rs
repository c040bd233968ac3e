//! Multicast groups.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use rdmacm::core::{CmAddr, Error, EventChannel, JoinFlags};
use rdmacm::{Cause, DatagramAddr, DatagramSocket, Node, Stage};
use rdmacm_test_helpers::WatchedThread;
use rdmacm_tests::{LosingGroups, PATIENCE, SECOND, Site};

use super::bound;
use rdmacm_tests_macros::case;

/// A group for each test: they run at the same time.
fn group(number: u8) -> CmAddr {
    CmAddr::from(([239, 71, 12, number], 0))
}

fn join(socket: &DatagramSocket, number: u8) -> DatagramAddr {
    socket.join_multicast(group(number), PATIENCE).unwrap()
}

#[case(alone, needs(Datagrams))]
fn two_members_receive(site: &Site) {
    let (one, other, sender) = (bound(site), bound(site), bound(site));
    let to = join(&one, 1);
    assert_eq!(join(&other, 1), to);
    assert_eq!(to.qp_number, 0xff_ffff);
    sender.send_to(b"all", &to).unwrap();
    for member in [&one, &other] {
        let datagram = member.recv_from().unwrap();
        assert_eq!(*datagram, *b"all");
        assert_eq!(datagram.destination(), to.gid());
        let back = datagram.sender().unwrap();
        assert_eq!(back.qp_number, sender.qp_number());
        member.send_to(b"one of them", &back).unwrap();
        let answer = sender.recv_from().unwrap();
        assert_eq!(*answer, *b"one of them");
        assert_eq!(answer.sender().unwrap().qp_number, member.qp_number());
    }
}

#[case(alone, needs(Datagrams))]
fn a_former_member_receives_nothing(site: &Site) {
    let (stays, leaves, sender) = (bound(site), bound(site), bound(site));
    let to = join(&stays, 2);
    join(&leaves, 2);
    leaves.leave_multicast(group(2)).unwrap();
    let error = leaves.leave_multicast(group(2)).unwrap_err();
    assert_eq!(error.address(), Some(group(2)), "{error}");
    assert_eq!(error.stage(), Stage::LeaveMulticast);
    assert!(error.to_string().contains("not a member"), "{error}");
    sender.send_to(b"to members", &to).unwrap();
    assert_eq!(*stays.recv_from().unwrap(), *b"to members");
    leaves.set_deadline(SECOND / 10);
    let error = leaves.recv_from().unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    // It can join again.
    leaves.set_deadline(PATIENCE);
    join(&leaves, 2);
    sender.send_to(b"again", &to).unwrap();
    assert_eq!(*leaves.recv_from().unwrap(), *b"again");
}

#[case(alone, needs(Datagrams))]
fn a_group_is_joined_once(site: &Site) {
    let (socket, sender) = (bound(site), bound(site));
    let to = join(&socket, 3);
    let error = socket.join_multicast(group(3), PATIENCE).unwrap_err();
    assert_eq!(error.stage(), Stage::JoinMulticast);
    assert_eq!(error.address(), Some(group(3)));
    assert!(error.to_string().contains("a member already"), "{error}");
    sender.send_to(b"still", &to).unwrap();
    assert_eq!(*socket.recv_from().unwrap(), *b"still");
}

#[case(alone, needs(Datagrams))]
fn a_send_only_member_receives_nothing(site: &Site) {
    let (member, sender) = (bound(site), bound(site));
    let to = join(&member, 4);
    let flags = JoinFlags::SEND_ONLY_FULL_MEMBER;
    let joined = sender.join_multicast_as(group(4), flags, PATIENCE);
    assert_eq!(joined.unwrap(), to);
    sender.send_to(b"one way", &to).unwrap();
    let datagram = member.recv_from().unwrap();
    assert_eq!(*datagram, *b"one way");
    // Nothing came before this.
    member
        .send_to(b"to you", &datagram.sender().unwrap())
        .unwrap();
    assert_eq!(*sender.recv_from().unwrap(), *b"to you");
    sender.leave_multicast(group(4)).unwrap();
}

#[case(alone, needs(Datagrams))]
fn datagrams_name_their_group(site: &Site) {
    let (member, sender) = (bound(site), bound(site));
    let groups = [join(&member, 5), join(&member, 6)];
    for to in [groups[1], groups[0]] {
        sender.send_to(b"which?", &to).unwrap();
        let datagram = member.recv_from().unwrap();
        assert_eq!(datagram.destination(), to.gid());
    }
}

/// A socket whose groups are lost when the file says so.
fn losing(site: &Site) -> (Arc<LosingGroups>, DatagramSocket) {
    let device = Arc::new(LosingGroups::new());
    let channel = EventChannel::options().ucma(device.clone());
    let node = Node::options().channel(channel).open().unwrap();
    let member = DatagramSocket::options().with_node(&node);
    let member = member.bind(site.v4(0)).unwrap();
    member.set_deadline(PATIENCE);
    (device, member)
}

#[track_caller]
fn assert_lost(error: &rdmacm::Error, number: u8) {
    assert_eq!(error.raw_os_error(), Some(libc::ENETRESET), "{error}");
    let Cause::GroupLost { group: which, .. } = error.cause() else {
        panic!("{error:?}");
    };
    assert_eq!(*which, group(number));
}

/// The socket leaves the group and still works.
#[case(alone, needs(Datagrams))]
fn a_lost_group_is_reported_once(site: &Site) {
    let (device, member) = losing(site);
    let sender = bound(site);
    let [kept, lost] = [9, 10].map(|number| join(&member, number));
    device.lose();
    assert_lost(&member.recv_from().unwrap_err(), 10);
    sender.send_to(b"nobody", &lost).unwrap();
    sender.send_to(b"a member", &kept).unwrap();
    assert_eq!(*member.recv_from().unwrap(), *b"a member");
    let error = member.leave_multicast(group(10)).unwrap_err();
    assert_eq!(error.stage(), Stage::LeaveMulticast);
    assert_eq!(join(&member, 10), lost);
    sender.send_to(b"again", &lost).unwrap();
    assert_eq!(*member.recv_from().unwrap(), *b"again");
}

/// The group is joined after the receiver has begun to wait.
#[case(alone, needs(Datagrams))]
fn a_receiver_that_waits_already_is_woken_by_the_loss(site: &Site) {
    let (device, member) = losing(site);
    let (receiver, receivers) = mpsc::channel();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            receiver.send(WatchedThread::current()).unwrap();
            member.recv_from().map(|_| ()).unwrap_err()
        });
        receivers.recv().unwrap().wait_until_asleep();
        join(&member, 11);
        let begin = Instant::now();
        device.lose();
        assert_lost(&receiving.join().unwrap(), 11);
        // At the deadline it would be found too.
        assert!(begin.elapsed() < PATIENCE / 2);
    });
}

/// The kernel would join, and the device could not send.
#[case(needs(Datagrams))]
fn an_ipv6_socket_joins_no_ipv4_group(site: &Site) {
    let socket = DatagramSocket::bind(site.v6(0)).unwrap();
    let error = socket.join_multicast(group(9), PATIENCE).unwrap_err();
    assert_eq!(error.stage(), Stage::JoinMulticast);
    let refused = matches!(error.cause(), Cause::Refused(Error::InvalidInput { .. }));
    assert!(refused, "{error}");
}

#[case(needs(Datagrams))]
fn the_address_of_a_host_is_no_group(site: &Site) {
    let socket = bound(site);
    for flags in [JoinFlags::FULL_MEMBER, JoinFlags::SEND_ONLY_FULL_MEMBER] {
        let error = socket.join_multicast_as(site.v4(0), flags, PATIENCE);
        let error = error.unwrap_err();
        let refused = matches!(error.cause(), Cause::Refused(Error::InvalidInput { .. }));
        assert!(refused, "{error}");
    }
}

#[case(alone, needs(Datagrams))]
fn an_ipv6_group_is_refused_on_roce(site: &Site) {
    let (socket, sender) = (bound(site), bound(site));
    // On RoCE v2 the kernel joins the network's groups for IPv4 only.
    let v6: CmAddr = "[ff0e::7147]:0".parse().unwrap();
    let error = socket.join_multicast(v6, PATIENCE).unwrap_err();
    assert_eq!(error.stage(), Stage::JoinMulticast);
    let Cause::Refused(Error::Command(refused)) = error.cause() else {
        panic!("{error:?}");
    };
    assert_ne!(refused.errno, 0);
    // The socket still works.
    let to = join(&socket, 7);
    sender.send_to(b"on", &to).unwrap();
    assert_eq!(*socket.recv_from().unwrap(), *b"on");
}

/// Another socket can use its port and group.
#[case(alone, needs(Datagrams))]
fn dropping_the_socket_leaves_the_group(site: &Site) {
    let socket = bound(site);
    join(&socket, 8);
    let port = socket.local_addr();
    drop(socket);
    let again = DatagramSocket::bind(port).unwrap();
    join(&again, 8);
}
