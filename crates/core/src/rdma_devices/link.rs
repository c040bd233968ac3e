//! The states of a port's links.

use std::fmt;

/// The state of a port's logical link. Source: `enum ib_port_state` of the
/// kernel's `include/rdma/ib_verbs.h`, IBTA Vol 1 §7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "ibv_port_state")]
pub struct PortState(pub u8);

impl PortState {
    /// No link.
    #[doc(alias = "IBV_PORT_DOWN")]
    pub const DOWN: Self = Self(1);
    /// Physical link up, waiting for the subnet manager.
    #[doc(alias = "IBV_PORT_INIT")]
    pub const INIT: Self = Self(2);
    /// Configured, not yet active.
    #[doc(alias = "IBV_PORT_ARMED")]
    pub const ARMED: Self = Self(3);
    /// Ready to carry data.
    #[doc(alias = "IBV_PORT_ACTIVE")]
    pub const ACTIVE: Self = Self(4);
    /// Active with a physical link that is being restored.
    #[doc(alias = "IBV_PORT_ACTIVE_DEFER")]
    pub const ACTIVE_DEFER: Self = Self(5);
}

impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::DOWN => "DOWN",
            Self::INIT => "INIT",
            Self::ARMED => "ARMED",
            Self::ACTIVE => "ACTIVE",
            Self::ACTIVE_DEFER => "ACTIVE_DEFER",
            Self(other) => return write!(f, "state {other}"),
        })
    }
}

/// The state of a port's physical link. Source: `enum ib_port_phys_state` of the
/// kernel's `include/rdma/ib_verbs.h`, IBTA Vol 1 §14.2.5.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PhysicalState(pub u8);

impl PhysicalState {
    /// Sleeping.
    pub const SLEEP: Self = Self(1);
    /// Polling for a link partner.
    pub const POLLING: Self = Self(2);
    /// Disabled.
    pub const DISABLED: Self = Self(3);
    /// Training the link.
    pub const TRAINING: Self = Self(4);
    /// Link up.
    pub const LINK_UP: Self = Self(5);
    /// Recovering from an error.
    pub const ERROR_RECOVERY: Self = Self(6);
    /// In a test mode.
    pub const TEST: Self = Self(7);
}

impl fmt::Display for PhysicalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::SLEEP => "SLEEP",
            Self::POLLING => "POLLING",
            Self::DISABLED => "DISABLED",
            Self::TRAINING => "TRAINING",
            Self::LINK_UP => "LINK_UP",
            Self::ERROR_RECOVERY => "ERROR_RECOVERY",
            Self::TEST => "TEST",
            Self(other) => return write!(f, "state {other}"),
        })
    }
}
