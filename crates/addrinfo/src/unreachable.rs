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
    /// Making an id to ask with.
    Create,
    /// Binding to a local address.
    Bind,
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
            Reason::Deadline => write!(f, "{}: no answer before the deadline", self.step),
            Reason::OnlyReliableConnected => f.write_str(
                "the device speaks iWARP, which has reliable connected queue pairs only",
            ),
        }
    }
}

impl std::error::Error for Unreachable {}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create an id",
            Self::Bind => "bind",
            Self::Address => "resolve the address",
            Self::Route => "resolve the route",
            Self::Query => "ask for the result",
        })
    }
}
