//! Which types of queue pair belong to which port space.

use rdmacm_core::{PortSpace, QpType, default_qp_type};

use crate::error::{Error, Result};

/// The types of queue pair an id in this port space can have:
///
/// | port space | queue pair types |
/// |---|---|
/// | `TCP` | `RC` |
/// | `UDP` | `UD` |
/// | `IPOIB` | `UD` |
/// | `IB` | `RC`, `UC`, `UD`, `XRC_INI`, `XRC_TGT` |
///
/// In the first three the kernel derives the type from the port space and ignores the
/// type it is given. This crate rejects another type there. Source: `ucma_get_qp_type`
/// of the kernel's `drivers/infiniband/core/ucma.c`.
#[must_use]
pub fn allowed_qp_types(port_space: PortSpace) -> &'static [QpType] {
    match port_space {
        PortSpace::TCP => &[QpType::RC],
        PortSpace::UDP | PortSpace::IPOIB => &[QpType::UD],
        PortSpace::IB => &[
            QpType::RC,
            QpType::UC,
            QpType::UD,
            QpType::XRC_INI,
            QpType::XRC_TGT,
        ],
        _ => &[],
    }
}

/// A port space and a queue pair type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) port_space: PortSpace,
    pub(crate) qp_type: QpType,
}

impl Kind {
    /// Chooses what the caller left open.
    pub(crate) fn new(port_space: Option<PortSpace>, qp_type: Option<QpType>) -> Result<Self> {
        let kind = match (port_space, qp_type) {
            (Some(port_space), Some(qp_type)) => Self {
                port_space,
                qp_type,
            },
            (Some(port_space), None) => Self {
                port_space,
                qp_type: default_qp_type(port_space),
            },
            (None, qp_type) => {
                let qp_type = qp_type.unwrap_or(QpType::RC);
                Self {
                    port_space: match qp_type {
                        QpType::RC => PortSpace::TCP,
                        QpType::UD => PortSpace::UDP,
                        _ => PortSpace::IB,
                    },
                    qp_type,
                }
            }
        };
        kind.checked()
    }

    /// The kind for a service that exists only for datagrams, if the port space has it.
    pub(crate) fn for_datagrams(port_space: Option<PortSpace>) -> Option<Self> {
        let port_space = port_space.unwrap_or(PortSpace::UDP);
        let kind = Self {
            port_space,
            qp_type: QpType::UD,
        };
        kind.checked().ok()
    }

    fn checked(self) -> Result<Self> {
        let Self {
            port_space,
            qp_type,
        } = self;
        if allowed_qp_types(port_space).contains(&qp_type) {
            Ok(self)
        } else {
            Err(Error::QpType {
                port_space,
                qp_type,
            })
        }
    }

    /// Whether service names are those of datagram services.
    pub(crate) fn is_datagram(self) -> bool {
        self.qp_type == QpType::UD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(port_space: Option<PortSpace>, qp_type: Option<QpType>) -> (PortSpace, QpType) {
        let kind = Kind::new(port_space, qp_type).unwrap();
        (kind.port_space, kind.qp_type)
    }

    #[test]
    fn what_the_caller_leaves_open_is_chosen() {
        assert_eq!(kind(None, None), (PortSpace::TCP, QpType::RC));
        assert_eq!(kind(None, Some(QpType::UD)), (PortSpace::UDP, QpType::UD));
        assert_eq!(kind(None, Some(QpType::UC)), (PortSpace::IB, QpType::UC));
        assert_eq!(
            kind(Some(PortSpace::IPOIB), None),
            (PortSpace::IPOIB, QpType::UD)
        );
        assert_eq!(kind(Some(PortSpace::IB), None), (PortSpace::IB, QpType::RC));
    }

    #[test]
    fn types_of_another_port_space_are_rejected() {
        for (port_space, qp_type) in [
            (PortSpace::TCP, QpType::UC),
            (PortSpace::TCP, QpType::UD),
            (PortSpace::UDP, QpType::RC),
            (PortSpace::IPOIB, QpType::XRC_INI),
            (PortSpace::new(0x999), QpType::RC),
        ] {
            assert_eq!(
                Kind::new(Some(port_space), Some(qp_type)),
                Err(Error::QpType {
                    port_space,
                    qp_type
                })
            );
        }
    }
}
