//! Whose structs a device has.

use rdmacm_abi::uverbs::{DriverId, rxe, siw};
use rdmacm_core::Transport;

/// The number of the port of rxe and siw.
pub(super) const ONLY_PORT: u8 = 1;

/// The driver whose structs a device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// RoCE in software.
    #[default]
    Rxe,
    /// iWARP in software.
    Siw,
}

impl Format {
    /// That of a device; InfiniBand adapters have no queue pairs.
    pub(crate) fn of(transport: Transport) -> Option<Self> {
        match transport {
            Transport::RoCE => Some(Self::Rxe),
            Transport::IWarp => Some(Self::Siw),
            _ => None,
        }
    }

    /// The driver, and the version of its structs.
    pub(super) fn driver(self) -> (DriverId, u32) {
        match self {
            Self::Rxe => (DriverId::RXE, rxe::ABI_VERSION),
            Self::Siw => (DriverId::SIW, siw::ABI_VERSION),
        }
    }

    pub(super) fn transport(self) -> Transport {
        match self {
            Self::Rxe => Transport::RoCE,
            Self::Siw => Transport::IWarp,
        }
    }
}
