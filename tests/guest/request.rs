//! Connect requests and the child ids they bring, from a peer that speaks to
//! the kernel without this library's ids. On rxe alone: siw connects nothing
//! without a queue pair.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, poll};
use rdmacm_abi::{
    ConnParam, Connect, CreateId, CreateIdResponse, Ece, EventNumber, EventResponse, GetEvent,
    NoResponse, ResolveAddr, ResolveRoute,
};
use rdmacm_core::device::{Attachment, Device, KernelDevice, transact};
use rdmacm_core::{CmAddr, EventKind, PortSpace, QpType};
use rdmacm_tests::{Site, expect, free_port, free_qp_number};
use zerocopy::FromZeros;

crate::cases!("request":
    a_request_brings_a_child_of_its_listeners_kind,
    private_data_fills_its_field,
    a_request_dropped_untaken_is_rejected,
    a_request_whose_listener_is_gone_is_rejected,
    a_child_outlives_its_listener,
);

/// What the peer says with its request.
const HELLO: &[u8] = b"hello, version 1";

/// An active side made of bare commands.
struct Peer {
    device: KernelDevice,
    id: u32,
}

impl Peer {
    /// Connects with a made-up queue pair number, which rxe takes.
    fn connect(destination: CmAddr) -> Self {
        let device = KernelDevice::open().unwrap();
        let create = CreateId::new(1, PortSpace::TCP, QpType::RC);
        let mut created = CreateIdResponse::new_zeroed();
        transact(&device, &create, &mut created, Attachment::None).unwrap();
        let peer = Self {
            device,
            id: created.id,
        };
        let destination = destination.socket_addr().unwrap().into();
        peer.send(&ResolveAddr::new(peer.id, None, destination, 1000));
        peer.expect(EventNumber::ADDR_RESOLVED);
        peer.send(&ResolveRoute::new(peer.id, 1000));
        peer.expect(EventNumber::ROUTE_RESOLVED);
        let param = ConnParam::new(free_qp_number());
        let param = param.with_private_data(HELLO).unwrap();
        peer.send(&Connect::new(peer.id, param, Ece::default()));
        peer
    }

    fn send<C: rdmacm_abi::Command<Response = NoResponse>>(&self, request: &C) {
        transact(&self.device, request, &mut NoResponse, Attachment::None).unwrap();
    }

    /// The next event, which is of this kind.
    fn expect(&self, kind: EventNumber) -> EventResponse {
        let mut fds = [PollFd::new(self.device.readiness(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut fds, 30_000_u16).unwrap(), 1, "{kind:?}");
        let mut event = EventResponse::new_zeroed();
        transact(&self.device, &GetEvent::new(), &mut event, Attachment::None).unwrap();
        assert_eq!(event.event, kind);
        event
    }

    /// Rejected for no reason of the connection manager's own.
    fn expect_rejection(&self) {
        const CONSUMER_DEFINED: i32 = 28;
        let event = self.expect(EventNumber::REJECTED);
        assert_eq!(event.status(), CONSUMER_DEFINED);
    }
}

fn a_request_brings_a_child_of_its_listeners_kind(site: &Site) {
    let (channel, listener) = site.id();
    listener.bind(site.v4(free_port())).unwrap();
    listener.listen(1).unwrap();
    let peer = Peer::connect(listener.local_addr().unwrap().unwrap());
    let request = expect(&channel, EventKind::ConnectRequest);
    assert!(*request.id() == listener);
    let child = request.into_child().unwrap();
    assert_eq!(child.port_space(), PortSpace::TCP);
    assert_eq!(child.qp_type(), QpType::RC);
    assert_eq!(child.local_addr(), listener.local_addr());
    assert!(child.peer_addr().unwrap().is_some());
    drop(child);
    peer.expect_rejection();
}

fn private_data_fills_its_field(site: &Site) {
    let (channel, listener) = site.id();
    listener.bind(site.v4(free_port())).unwrap();
    listener.listen(1).unwrap();
    let _peer = Peer::connect(listener.local_addr().unwrap().unwrap());
    let request = expect(&channel, EventKind::ConnectRequest);
    let data = request.private_data();
    assert_eq!(data.len(), 56);
    let (hello, padding) = data.split_at(HELLO.len());
    assert_eq!(hello, HELLO);
    assert!(padding.iter().all(|byte| *byte == 0));
}

fn a_request_dropped_untaken_is_rejected(site: &Site) {
    let (channel, listener) = site.id();
    listener.bind(site.v4(free_port())).unwrap();
    listener.listen(1).unwrap();
    let peer = Peer::connect(listener.local_addr().unwrap().unwrap());
    drop(expect(&channel, EventKind::ConnectRequest));
    peer.expect_rejection();
}

fn a_request_whose_listener_is_gone_is_rejected(site: &Site) {
    let (channel, listener) = site.id();
    listener.bind(site.v4(free_port())).unwrap();
    listener.listen(1).unwrap();
    let peer = Peer::connect(listener.local_addr().unwrap().unwrap());
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, 30_000_u16).unwrap(), 1);
    drop(listener);
    assert!(channel.try_next_event().unwrap().is_none());
    peer.expect_rejection();
}

fn a_child_outlives_its_listener(site: &Site) {
    let (channel, listener) = site.id();
    listener.bind(site.v4(free_port())).unwrap();
    listener.listen(1).unwrap();
    let peer = Peer::connect(listener.local_addr().unwrap().unwrap());
    let request = expect(&channel, EventKind::ConnectRequest);
    drop(listener);
    let child = request.into_child().unwrap();
    assert!(child.addresses().unwrap().device.is_some());
    assert!(channel.next_event(Duration::ZERO).is_err());
    drop(child);
    peer.expect_rejection();
}
