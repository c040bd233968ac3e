//! The two RDMA devices, each on a wire of its own.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::status::TIMED_OUT;
use crate::guest::Station;

/// A soft RDMA device of both guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Soft {
    /// RoCE v2.
    Rxe,
    /// iWARP.
    Siw,
}

/// Sixteen tries of four seconds or more.
const ROCE_PATIENCE: Duration = Duration::from_secs(60);
/// Ten seconds, by a clock that may go a little faster than this one.
const IWARP_PATIENCE: Duration = Duration::from_secs(9);

/// On both devices.
pub(super) const BOTH: &[Soft] = &[Soft::Rxe, Soft::Siw];
/// On none of them.
pub(super) const NEITHER: &[Soft] = &[];
/// On rxe alone.
pub(super) const RXE: &[Soft] = &[Soft::Rxe];
/// On siw alone.
pub(super) const SIW: &[Soft] = &[Soft::Siw];

impl Soft {
    /// Its name in both guests.
    pub(super) const fn device(self) -> &'static str {
        match self {
            Self::Rxe => "rxe0",
            Self::Siw => "siw0",
        }
    }

    /// The network card it uses in both guests.
    pub(super) const fn interface(self) -> &'static str {
        match self {
            Self::Rxe => "eth0",
            Self::Siw => "eth1",
        }
    }

    /// That card's hardware address.
    pub(super) const fn hardware(self, station: Station) -> &'static str {
        let [rxe, siw] = station.cards();
        match self {
            Self::Rxe => rxe,
            Self::Siw => siw,
        }
    }

    /// Its IPv4 address at a station.
    pub(super) fn v4(self, station: Station, port: u16) -> SocketAddr {
        self.host(station.host(), port)
    }

    /// An address on its wire that nobody has.
    pub(super) fn nobody(self, port: u16) -> SocketAddr {
        self.host(77, port)
    }

    fn host(self, host: u8, port: u16) -> SocketAddr {
        (Ipv4Addr::new(10, 71, self.network(), host), port).into()
    }

    /// How long a request waits for its answer at least: sixteen tries on
    /// RoCE, ten seconds on iWARP once there is a TCP connection.
    pub(super) const fn patience_of_a_request(self) -> Duration {
        match self {
            Self::Rxe => ROCE_PATIENCE,
            Self::Siw => IWARP_PATIENCE,
        }
    }

    /// How long a disconnection waits for its answer at least: iWARP does not
    /// ask.
    pub(super) const fn patience_of_a_disconnection(self) -> Duration {
        match self {
            Self::Rxe => ROCE_PATIENCE,
            Self::Siw => Duration::ZERO,
        }
    }

    /// The status with which a disconnection ends when the peer says nothing:
    /// RoCE asks it, in vain, iWARP closes its own end.
    pub(super) const fn disconnected_from_silence(self) -> i32 {
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

    /// Its IPv6 address at a station.
    pub(super) fn v6(self, station: Station, port: u16) -> SocketAddr {
        let host = station.host().into();
        let address = Ipv6Addr::new(0xfd71, self.network().into(), 0, 0, 0, 0, 0, host);
        (address, port).into()
    }
}

impl fmt::Display for Soft {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rxe => "rxe",
            Self::Siw => "siw",
        })
    }
}
