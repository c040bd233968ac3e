//! Failed events.

use std::fmt;

use rdmacm_abi::{RejectReason, SidrStatus};

use crate::errno::Name;
use crate::event_kind::EventKind;

/// The failure that an event reports: its kind and the kernel's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventFailure {
    kind: EventKind,
    status: i32,
}

impl EventFailure {
    /// The failure of an event; `None` if it reports success.
    pub(crate) fn of(kind: EventKind, status: i32) -> Option<Self> {
        (status != 0 || kind.is_failure()).then_some(Self::new(kind, status))
    }

    /// A failure, for tests of programs that handle them.
    #[must_use]
    pub fn new(kind: EventKind, status: i32) -> Self {
        Self { kind, status }
    }

    /// The kind of the event.
    #[must_use]
    pub fn kind(self) -> EventKind {
        self.kind
    }

    /// The kernel's status, see [`Event::status`](crate::Event::status).
    #[must_use]
    pub fn status(self) -> i32 {
        self.status
    }

    /// The error number, positive, if the status is one.
    #[must_use]
    pub fn raw_os_error(self) -> Option<i32> {
        (self.status < 0).then_some(self.status.wrapping_neg())
    }

    /// The reason for which an InfiniBand or RoCE peer rejected.
    #[must_use]
    pub fn reject_reason(self) -> Option<RejectReason> {
        (self.kind == EventKind::Rejected)
            .then(|| RejectReason::from_status(self.status))
            .flatten()
    }

    /// Whether the peer rejected, or its iWARP stack reset the connection before it was
    /// established; of a datagram service, whether the peer replied that it has none, or rejects.
    #[must_use]
    pub fn is_rejected(self) -> bool {
        match self.kind {
            EventKind::Rejected => true,
            EventKind::Unreachable => self.status > 0,
            _ => false,
        }
    }

    /// Whether the peer's address or route could not be resolved, also because no RDMA device
    /// serves it, or the peer does not answer. The kernel reports a datagram service that replies
    /// with an unexpected queue key in the same way.
    #[must_use]
    pub fn is_unreachable(self) -> bool {
        match self.kind {
            EventKind::AddrError | EventKind::RouteError => true,
            // A positive status is the answer of a datagram service.
            EventKind::Unreachable => self.status <= 0,
            _ => false,
        }
    }

    /// Whether the kernel's timeout passed.
    #[must_use]
    pub fn is_timeout(self) -> bool {
        self.raw_os_error() == Some(libc::ETIMEDOUT)
    }

    /// The meaning of a datagram service's answer, the positive status of an unreachable
    /// peer.
    fn sidr_text(self) -> Option<&'static str> {
        (self.kind == EventKind::Unreachable)
            .then(|| SidrStatus::from_status(self.status))
            .flatten()
            .and_then(SidrStatus::text)
    }

    /// The likely cause in words, if it is known.
    #[must_use]
    pub fn cause(self) -> Option<&'static str> {
        Some(match (self.kind, self.status.wrapping_neg()) {
            (EventKind::AddrError, libc::ETIMEDOUT) => {
                "the neighbour did not answer (ARP, neighbour discovery) within the timeout"
            }
            (EventKind::AddrError, libc::ENODEV) => {
                "no RDMA device serves the interface that leads there"
            }
            (EventKind::AddrError, libc::ENETUNREACH) => "no route leads there",
            (EventKind::AddrError, libc::EINVAL) => {
                "the datagram service replied with no queue key, or with another one than the \
                 id's; or the kernel refused the address"
            }
            (EventKind::AddrError, libc::EHOSTUNREACH) => {
                "the route there ends at an unreachable host"
            }
            (EventKind::RouteError, libc::ETIMEDOUT) => {
                "the subnet administrator did not answer within the timeout"
            }
            (EventKind::RouteError, libc::EINVAL) => {
                "the subnet administrator knows no path there, or refused to answer"
            }
            (EventKind::AddrInfoError, libc::ENODATA) => {
                "the subnet administrator knows no such service"
            }
            (EventKind::AddrInfoError, libc::ENOENT) => "the name or the service is unknown",
            (EventKind::AddrInfoError, libc::EAGAIN) => {
                "the name server did not answer or failed temporarily, or no thread could be started"
            }
            (EventKind::AddrInfoError, libc::ETIMEDOUT) => {
                "the name server or the subnet administrator did not answer in time"
            }
            (EventKind::AddrInfoError, libc::EINVAL) => {
                "the subnet administrator refused to answer, or the name resolver or the kernel \
                 refused the arguments"
            }
            (EventKind::Unreachable, libc::ETIMEDOUT) => {
                "the peer's connection manager did not answer, or the neighbour has another \
                 link-layer address now"
            }
            (EventKind::Rejected, libc::ECONNREFUSED) => {
                "the peer refused, or its options of the handshake (CRC, markers) do not match"
            }
            (EventKind::Rejected, libc::ECONNRESET) => "the peer rejected or reset the connection",
            (EventKind::DeviceRemoval, _) => "the RDMA device of this id is going away",
            // `cma_netdev_change`
            (EventKind::AddrChange, _) => "the network interface failed over to another device",
            _ => return None,
        })
    }
}

impl fmt::Display for EventFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match (self.reject_reason(), self.raw_os_error()) {
            (Some(reason), _) => {
                write!(f, " {}", self.status)?;
                return reason.text().map_or(Ok(()), |text| write!(f, ": {text}"));
            }
            (None, Some(errno)) => write!(f, " {}", Name(errno))?,
            (None, None) if self.status != 0 => {
                write!(f, " {}", self.status)?;
                return self
                    .sidr_text()
                    .map_or(Ok(()), |text| write!(f, ": {text}"));
            }
            (None, None) => {}
        }
        self.cause().map_or(Ok(()), |cause| write!(f, ": {cause}"))
    }
}

impl std::error::Error for EventFailure {}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: EventKind, status: i32) -> EventFailure {
        EventFailure { kind, status }
    }

    #[test]
    fn a_failure_says_what_and_why() {
        let silent = failure(EventKind::AddrError, -libc::ETIMEDOUT);
        assert_eq!(
            silent.to_string(),
            "ADDR_ERROR ETIMEDOUT: the neighbour did not answer (ARP, neighbour discovery) \
             within the timeout"
        );
        assert_eq!(silent.raw_os_error(), Some(libc::ETIMEDOUT));
        let another_key = failure(EventKind::AddrError, -libc::EINVAL);
        assert!(another_key.to_string().contains("queue key"));
        assert_eq!(silent.reject_reason(), None);
    }

    #[test]
    fn what_kind_of_failure_it_is() {
        let silent = failure(EventKind::Unreachable, -libc::ETIMEDOUT);
        assert!(silent.is_unreachable() && silent.is_timeout() && !silent.is_rejected());
        let no_service = failure(EventKind::Unreachable, 1);
        assert!(no_service.is_rejected() && !no_service.is_unreachable());
        let no_route = failure(EventKind::AddrError, -libc::ENETUNREACH);
        assert!(no_route.is_unreachable() && !no_route.is_timeout());
        for status in [8, 28, -libc::ECONNRESET] {
            let rejected = failure(EventKind::Rejected, status);
            assert!(rejected.is_rejected() && !rejected.is_unreachable());
        }
        let refused = failure(EventKind::Unreachable, 1);
        assert!(!refused.is_unreachable());
    }

    #[test]
    fn a_rejection_names_its_reason() {
        let rejected = failure(EventKind::Rejected, 28);
        assert_eq!(
            rejected.reject_reason(),
            Some(RejectReason::CONSUMER_DEFINED)
        );
        assert!(rejected.to_string().starts_with("REJECTED 28: "));
    }

    #[test]
    fn a_datagram_services_answer_is_read() {
        let unknown = failure(EventKind::Unreachable, 1);
        let words = unknown.to_string();
        assert!(words.starts_with("UNREACHABLE 1: "), "{words}");
    }

    #[test]
    fn the_smallest_status_is_no_panic() {
        let strange = failure(EventKind::Unknown(77), i32::MIN);
        assert!(strange.to_string().starts_with("event 77"));
    }
}
