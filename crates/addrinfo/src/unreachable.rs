//! Why RDMA does not reach an address.

use std::fmt;

use rdmacm_core::{Error, EventFailure};

/// Why RDMA does not reach an address, and which step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreachable {
    /// The step that failed.
    pub step: Step,
    /// What went wrong.
    pub reason: Reason,
}

/// A step of a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Binding to a local address.
    Bind,
    /// Querying the subnet administrator for a service.
    Service,
    /// Resolving the address.
    Address,
    /// Resolving the route.
    Route,
    /// Querying the result.
    Query,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The command failed at once.
    Refused(Error),
    /// The kernel's resolution failed.
    Failed(EventFailure),
    /// The deadline passed.
    Deadline,
    /// The device is an iWARP device, which supports only reliable connected queue pairs.
    OnlyReliableConnected,
    /// The port space is `IPOIB`, and the interface is no IPoIB interface.
    OnlyIpoib,
    /// A native InfiniBand address on a RoCE device, which resolves such an address but
    /// has no route to it.
    OnlyInfiniband,
    /// A link-local IPv6 address without a scope id, which names no interface.
    NoScope,
    /// A loopback or wildcard destination on a RoCE or iWARP device.
    Loopback,
}

impl Unreachable {
    pub(crate) fn refused(step: Step) -> impl FnOnce(Error) -> Self {
        move |error| Self {
            step,
            reason: Reason::Refused(error),
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Refused(error) => error.fmt(f),
            Reason::Failed(failure) => write!(f, "{}: {failure}", self.step),
            Reason::Deadline => {
                write!(f, "{}: no answer before the deadline", self.step)?;
                match self.step {
                    Step::Address => f.write_str(" from the neighbour (ARP, neighbour discovery)"),
                    _ => Ok(()),
                }
            }
            Reason::OnlyReliableConnected => {
                f.write_str("iWARP devices support only reliable connected queue pairs")
            }
            Reason::OnlyIpoib => write!(
                f,
                "{}: port space IPOIB needs an address of an IPoIB interface",
                self.step
            ),
            Reason::OnlyInfiniband => write!(
                f,
                "{}: native InfiniBand addresses need an InfiniBand port",
                self.step
            ),
            Reason::NoScope => write!(
                f,
                "{}: a link-local address needs a scope id, as in fe80::1%eth0",
                self.step
            ),
            Reason::Loopback => f.write_str(
                "no RDMA device has a loopback address: use the address of the device's interface",
            ),
        }
    }
}

impl std::error::Error for Unreachable {}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bind => "bind",
            Self::Service => "query the subnet administrator",
            Self::Address => "resolve the address",
            Self::Route => "resolve the route",
            Self::Query => "query the result",
        })
    }
}
