//! The two software RDMA devices of each guest.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::status::TIMED_OUT;
use crate::guest::WireEnd;

/// A software RDMA device, which both guests have on a wire of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoftDevice {
    /// RoCE v2.
    Rxe,
    /// iWARP.
    Siw,
}

/// RoCE sends a message 16 times, every four seconds or less often.
const ROCE_RETRY_TIME: Duration = Duration::from_secs(60);
/// siw waits for ten seconds, by a clock that may run slightly faster than this one.
const IWARP_TIMEOUT: Duration = Duration::from_secs(9);

/// Both devices.
pub(super) const BOTH: &[SoftDevice] = &[SoftDevice::Rxe, SoftDevice::Siw];
/// No device.
pub(super) const NEITHER: &[SoftDevice] = &[];
/// Only rxe.
pub(super) const RXE: &[SoftDevice] = &[SoftDevice::Rxe];
/// Only siw.
pub(super) const SIW: &[SoftDevice] = &[SoftDevice::Siw];

impl SoftDevice {
    /// Its name in both guests.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rxe => "rxe0",
            Self::Siw => "siw0",
        }
    }

    /// The network interface that it uses in both guests.
    pub(super) const fn interface(self) -> &'static str {
        match self {
            Self::Rxe => "eth0",
            Self::Siw => "eth1",
        }
    }

    /// The MAC address of that interface.
    pub(super) const fn mac_address(self, end: WireEnd) -> &'static str {
        let [rxe, siw] = end.mac_addresses();
        match self {
            Self::Rxe => rxe,
            Self::Siw => siw,
        }
    }

    /// Its IPv4 address in the guest at this end.
    pub(super) fn v4(self, end: WireEnd, port: u16) -> SocketAddr {
        self.host(end.host(), port)
    }

    /// An address on its wire that no guest has.
    pub(super) fn unused_address(self, port: u16) -> SocketAddr {
        self.host(77, port)
    }

    fn host(self, host: u8, port: u16) -> SocketAddr {
        (Ipv4Addr::new(10, 71, self.network(), host), port).into()
    }

    /// The least time that the kernel waits for the answer to a connect request: 16 attempts
    /// on RoCE, ten seconds on iWARP after the TCP connection is established.
    pub(super) const fn min_request_timeout(self) -> Duration {
        match self {
            Self::Rxe => ROCE_RETRY_TIME,
            Self::Siw => IWARP_TIMEOUT,
        }
    }

    /// The least time that the kernel waits for the answer to a disconnect request; iWARP sends
    /// none.
    pub(super) const fn min_disconnect_timeout(self) -> Duration {
        match self {
            Self::Rxe => ROCE_RETRY_TIME,
            Self::Siw => Duration::ZERO,
        }
    }

    /// The status of `DISCONNECTED` if the peer does not answer: RoCE's disconnect request times
    /// out, iWARP only closes its own side.
    pub(super) const fn unanswered_disconnect_status(self) -> i32 {
        match self {
            Self::Rxe => TIMED_OUT,
            Self::Siw => 0,
        }
    }

    const fn network(self) -> u8 {
        match self {
            Self::Rxe => 8,
            Self::Siw => 9,
        }
    }

    /// Its IPv6 address in the guest at this end.
    pub(super) fn v6(self, end: WireEnd, port: u16) -> SocketAddr {
        let host = end.host().into();
        let address = Ipv6Addr::new(0xfd71, self.network().into(), 0, 0, 0, 0, 0, host);
        (address, port).into()
    }
}

impl fmt::Display for SoftDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rxe => "rxe",
            Self::Siw => "siw",
        })
    }
}
