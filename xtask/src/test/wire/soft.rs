//! The two RDMA devices, each on a wire of its own.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use crate::guest::Station;

/// A soft RDMA device of both guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Soft {
    /// RoCE v2.
    Rxe,
    /// iWARP.
    Siw,
}

/// On both devices.
pub(super) const BOTH: &[Soft] = &[Soft::Rxe, Soft::Siw];
/// On rxe alone.
pub(super) const RXE: &[Soft] = &[Soft::Rxe];
/// On siw alone.
pub(super) const SIW: &[Soft] = &[Soft::Siw];

impl Soft {
    /// Its address at a station.
    pub(super) fn address(self, station: Station, port: u16) -> SocketAddr {
        self.host(station.host(), port)
    }

    /// An address on its wire that nobody has.
    pub(super) fn nobody(self, port: u16) -> SocketAddr {
        self.host(77, port)
    }

    fn host(self, host: u8, port: u16) -> SocketAddr {
        let network = match self {
            Self::Rxe => 8,
            Self::Siw => 9,
        };
        (Ipv4Addr::new(10, 71, network, host), port).into()
    }

    /// Its network card.
    pub(super) const fn card(self) -> &'static str {
        match self {
            Self::Rxe => "eth0",
            Self::Siw => "eth1",
        }
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
