//! Why RDMA does not reach an address.

use std::fmt;

use rdmacm_core::{Error, EventFailure};

/// Why RDMA does not reach an address, and at which step that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreachable {
    /// The step that failed.
    pub step: Step,
    /// What went wrong.
    pub reason: Reason,
}

/// A step on the way to a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Binding to a local address.
    Bind,
    /// Asking the subnet administrator for a service.
    Service,
    /// Resolving the address.
    Address,
    /// Resolving the route.
    Route,
    /// Asking for the result.
    Query,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The kernel, or this library, refused.
    Refused(Error),
    /// The kernel tried and failed.
    Failed(EventFailure),
    /// The deadline passed.
    Deadline,
    /// The device speaks iWARP, which has reliable connected queue pairs only.
    OnlyReliableConnected,
    /// Port space `IPOIB` was asked for, and the interface is no IPoIB one.
    OnlyIpoib,
    /// A native InfiniBand address, and the device speaks RoCE, which resolves such
    /// an address and has no route to it.
    OnlyInfiniband,
    /// A link-local IPv6 address without a scope id, which names no interface.
    NoScope,
    /// A loopback or wildcard destination, and the device speaks RoCE or iWARP.
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
            Reason::OnlyReliableConnected => f.write_str(
                "the device speaks iWARP, which has reliable connected queue pairs only",
            ),
            Reason::OnlyIpoib => write!(
                f,
                "{}: port space IPOIB is for the addresses of IPoIB interfaces only",
                self.step
            ),
            Reason::OnlyInfiniband => write!(
                f,
                "{}: native InfiniBand addresses are for InfiniBand only, and the port that would \
                 lead there is none of InfiniBand's",
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
            Self::Service => "ask the subnet administrator",
            Self::Address => "resolve the address",
            Self::Route => "resolve the route",
            Self::Query => "ask for the result",
        })
    }
}
