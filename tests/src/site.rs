//! The device and address ABI of a test.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV6};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use nix::net::if_::if_nametoindex;
use rdmacm_core::ucma::UcmaFile;
use rdmacm_core::{
    AddressAbi, CmAddr, CmId, Event, EventChannel, EventKind, PortSpace, QpType, RdmaDevice,
};
use rdmacm_verbs::{Context, QpCaps, QueuePair};

/// Longer than any success takes, and short enough to wait for.
pub const SECOND: Duration = Duration::from_secs(1);

/// The timeout for what must happen.
pub use rdmacm_test_helpers::PATIENCE;

/// A soft RDMA device of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soft {
    /// RoCE v2.
    Rxe,
    /// iWARP.
    Siw,
}

/// One RDMA device of the guest, and the ABI of the address commands.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The driver.
    pub soft: Soft,
    /// The device's name.
    pub device: &'static str,
    /// The network interface it serves.
    pub netdev: &'static str,
    /// Its IPv4 address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address.
    pub v6: Ipv6Addr,
    /// An IPv4 neighbour that never answers.
    pub silent: Ipv4Addr,
    /// Which address commands to use.
    pub abi: AddressAbi,
}

/// An address on an interface without an RDMA device.
pub const PLAIN: Ipv4Addr = Ipv4Addr::new(10, 71, 3, 1);
/// An address without a route.
pub const UNROUTABLE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

impl Site {
    /// The rxe device of every guest.
    #[must_use]
    pub fn rxe(abi: AddressAbi) -> Self {
        Self {
            soft: Soft::Rxe,
            device: "rxe0",
            netdev: "vrxe0",
            v4: Ipv4Addr::new(10, 71, 1, 1),
            v6: Ipv6Addr::new(0xfd71, 1, 0, 0, 0, 0, 0, 1),
            silent: Ipv4Addr::new(10, 71, 1, 77),
            abi,
        }
    }

    /// The siw device of every guest.
    #[must_use]
    pub fn siw(abi: AddressAbi) -> Self {
        Self {
            soft: Soft::Siw,
            device: "siw0",
            netdev: "vsiw0",
            v4: Ipv4Addr::new(10, 71, 2, 1),
            v6: Ipv6Addr::new(0xfd71, 2, 0, 0, 0, 0, 0, 1),
            silent: Ipv4Addr::new(10, 71, 2, 77),
            abi,
        }
    }

    /// The kind of its links for `rdma link add`.
    #[must_use]
    pub fn driver(&self) -> &'static str {
        match self.soft {
            Soft::Rxe => "rxe",
            Soft::Siw => "siw",
        }
    }

    /// A channel with this site's address ABI.
    #[must_use]
    pub fn channel(&self) -> EventChannel {
        EventChannel::options()
            .address_abi(self.abi)
            .open()
            .unwrap()
    }

    /// A channel with this site's address ABI on the caller's file.
    #[must_use]
    pub fn channel_on<D: UcmaFile + 'static>(&self, device: &Arc<D>) -> EventChannel {
        let device = Arc::clone(device);
        let options = EventChannel::options().ucma(device);
        options.address_abi(self.abi).open().unwrap()
    }

    /// A channel and a TCP id on it.
    pub fn id(&self) -> (EventChannel, CmId) {
        let channel = self.channel();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        (channel, id)
    }

    /// The device's IPv4 address with a port.
    #[must_use]
    pub fn v4(&self, port: u16) -> CmAddr {
        CmAddr::from((self.v4, port))
    }

    /// The device's IPv6 address with a port.
    #[must_use]
    pub fn v6(&self, port: u16) -> CmAddr {
        CmAddr::from((self.v6, port))
    }

    /// The link-local address of the device's interface, with a scope.
    #[must_use]
    pub fn link_local(&self, scope_id: u32) -> CmAddr {
        let addresses = std::fs::read_to_string("/proc/net/if_inet6").unwrap();
        let line = addresses
            .lines()
            .find(|line| line.starts_with("fe80") && line.ends_with(self.netdev))
            .unwrap();
        let ip = u128::from_str_radix(&line[..32], 16).unwrap();
        SocketAddrV6::new(Ipv6Addr::from(ip), 0, 0, scope_id).into()
    }

    /// The number of the device's interface.
    #[must_use]
    pub fn scope_id(&self) -> u32 {
        if_nametoindex(self.netdev).unwrap()
    }

    /// An id whose address is resolved to `destination`.
    pub fn resolved(&self, channel: &EventChannel, destination: CmAddr) -> CmId {
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.resolve_addr(None, destination, PATIENCE).unwrap();
        expect(channel, EventKind::AddrResolved);
        id
    }

    /// An id whose route is resolved to `destination`.
    pub fn routed(&self, channel: &EventChannel, destination: CmAddr) -> CmId {
        let id = self.resolved(channel, destination);
        id.resolve_route(PATIENCE).unwrap();
        expect(channel, EventKind::RouteResolved);
        id
    }

    /// The device, as the kernel lists it.
    #[must_use]
    pub fn rdma_device(&self) -> RdmaDevice {
        let mut devices = RdmaDevice::list().unwrap().into_iter();
        devices.find(|one| one.name == self.device).unwrap()
    }

    /// The device, opened for verbs.
    #[must_use]
    pub fn verbs(&self) -> Context {
        Context::open(&self.rdma_device()).unwrap()
    }

    /// A queue pair for a reliable connection, with a domain and completion queues of
    /// its own.
    #[must_use]
    pub fn queue_pair(&self) -> QueuePair {
        self.queue_pair_with(QpCaps::default())
    }

    /// Like [`queue_pair`](Self::queue_pair), with these capacities.
    #[must_use]
    pub fn queue_pair_with(&self, caps: QpCaps) -> QueuePair {
        let options = QueuePair::options(QpType::RC).with_completion_channels();
        options.caps(caps).create(&self.verbs()).unwrap()
    }

    /// Both addresses of the device.
    #[must_use]
    pub fn ips(&self) -> [IpAddr; 2] {
        [self.v4.into(), self.v6.into()]
    }
}

/// The next event, which must be a success of this kind.
///
/// # Panics
/// If it is not, or if none arrives.
#[expect(
    clippy::must_use_candidate,
    reason = "most callers only want it to have come"
)]
pub fn expect(channel: &EventChannel, kind: EventKind) -> Event {
    let event = channel.next_event(PATIENCE).unwrap();
    assert_eq!((event.kind(), event.failure()), (kind, None));
    event
}

/// A queue pair number that no other test of this process uses, for rxe, which connects
/// without a queue pair.
pub fn free_qp_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0x10_0000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A port that no other test uses on either device: iWARP listens on the TCP port of
/// the same number. A child process counts from [`FIRST_PORT`].
#[must_use]
pub fn free_port() -> u16 {
    free_ports(1)
}

/// The first of `count` consecutive ports.
pub fn free_ports(count: u16) -> u16 {
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        let first = std::env::var(FIRST_PORT).ok();
        AtomicU16::new(first.map_or(20_000, |port| port.parse().unwrap()))
    });
    NEXT.fetch_add(count, Ordering::Relaxed)
}

/// The environment variable with a child process's first port.
pub const FIRST_PORT: &str = "RDMACM_TEST_FIRST_PORT";
