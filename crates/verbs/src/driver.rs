//! The drivers whose words this crate knows.

use std::fmt;

use rdmacm_abi::uverbs::{rxe, siw};
use rdmacm_core::{DriverId, QpAttrMask, Transport};

use crate::error::{Error, Result};

/// The attributes of the kernel's commands, the bits up to the last of them.
const KNOWN: QpAttrMask = QpAttrMask::from_bits_retain((QpAttrMask::DEST_QPN.bits() << 1) - 1);

/// A driver whose words this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Driver {
    /// `rdma_rxe`: RoCE v2 in software, version 2.
    Rxe,
    /// `siw`: iWARP in software, version 1. Reliable connections only.
    Siw,
}

impl Driver {
    /// The driver of a device, if it and its version are known here.
    pub(crate) fn of(device: &str, driver: DriverId, abi_version: u32) -> Result<Self> {
        match (driver, abi_version) {
            (DriverId::RXE, rxe::ABI_VERSION) => Ok(Self::Rxe),
            (DriverId::SIW, siw::ABI_VERSION) => Ok(Self::Siw),
            _ => Err(Error::Driver {
                device: device.to_owned(),
                driver,
                abi_version,
            }),
        }
    }

    /// The protocol its devices speak.
    #[must_use]
    pub fn transport(self) -> Transport {
        match self {
            Self::Rxe => Transport::RoCE,
            Self::Siw => Transport::IWarp,
        }
    }

    /// Which attributes of a queue pair it tells, siw's state not on every
    /// kernel.
    pub(crate) fn tells(self) -> QpAttrMask {
        match self {
            Self::Rxe => KNOWN,
            Self::Siw => {
                QpAttrMask::STATE
                    | QpAttrMask::CAP
                    | QpAttrMask::PATH_MTU
                    | QpAttrMask::ACCESS_FLAGS
                    | QpAttrMask::MAX_QP_RD_ATOMIC
                    | QpAttrMask::MAX_DEST_RD_ATOMIC
            }
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rxe => "rxe",
            Self::Siw => "siw",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rxe_and_siw_are_known_by_driver_and_version() {
        assert_eq!(Driver::of("a", DriverId::RXE, 2), Ok(Driver::Rxe));
        assert_eq!(Driver::of("a", DriverId::SIW, 1), Ok(Driver::Siw));
    }

    #[test]
    fn others_are_refused_by_name_and_version() {
        let words = |driver, version| {
            let error = Driver::of("mlx5_0", driver, version).unwrap_err();
            assert_eq!(error.raw_os_error(), None);
            error.to_string()
        };
        assert_eq!(
            words(DriverId::MLX5, 1),
            "open mlx5_0: its driver is MLX5, version 1; known here are RXE, version 2, and SIW, \
             version 1"
        );
        assert!(words(DriverId::RXE, 3).contains("RXE, version 3;"));
        assert!(words(DriverId::SIW, 2).contains("SIW, version 2;"));
        assert!(words(DriverId::UNKNOWN, 2).contains("UNKNOWN, version 2;"));
        assert!(words(DriverId::new(999), 1).contains("DriverId(999), version 1;"));
    }

    #[test]
    fn siw_tells_little() {
        assert_eq!(Driver::Rxe.tells().bits(), 0x1f_ffff);
        assert!(Driver::Rxe.tells().contains(Driver::Siw.tells()));
        assert!(!Driver::Siw.tells().contains(QpAttrMask::QKEY));
    }
}
