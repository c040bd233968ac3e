//! Failed requests.

use std::fmt;

use rdmacm_abi::uverbs::WcStatus;

use super::{WorkId, WorkKind};

/// The error of a failed request. It moves a connected queue pair to the error state, in
/// which posting fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionError {
    /// The status.
    pub status: WcStatus,
    /// The vendor's error code.
    #[doc(alias = "vendor_err")]
    pub vendor_error: u32,
    /// The number of the queue pair.
    #[doc(alias = "qp_num")]
    pub qp_number: u32,
    /// The request.
    pub work: WorkId,
    /// Its kind.
    pub kind: WorkKind,
}

impl CompletionError {
    /// Whether the request was flushed, because another failed or the connection ended.
    #[must_use]
    pub fn is_flush(&self) -> bool {
        self.status == WcStatus::WR_FLUSH_ERR
    }

    /// Whether the context was closed, or the device removed.
    #[must_use]
    pub fn is_context_closed(&self) -> bool {
        self.status == WcStatus::FATAL_ERR
    }

    /// The likely cause as text, if the status has one.
    #[must_use]
    #[doc(alias = "ibv_wc_status_str")]
    pub fn cause(&self) -> Option<&'static str> {
        Some(match self.status {
            WcStatus::LOC_LEN_ERR => {
                "a message was longer than the receive request it came for, or than the device \
                 can send"
            }
            WcStatus::LOC_QP_OP_ERR => {
                "the device could not carry it out: its memory is not registered for this, or, \
                 on rxe, a message was longer than the receive request it came for, or this host \
                 could not send it (no route, no address), or, on siw, the peer disconnected right \
                 after the last byte, before the device processed it"
            }
            WcStatus::LOC_PROT_ERR => "the memory is not registered for this queue pair",
            WcStatus::WR_FLUSH_ERR => {
                "the queue pair went to the error state before this was done: the connection \
                 ended, or an earlier request failed, or, on rxe, this host could not send it (no \
                 route, no address, a firewall, a full transmit queue)"
            }
            WcStatus::LOC_ACCESS_ERR => "the memory is not registered for this access",
            WcStatus::REM_INV_REQ_ERR => {
                "the peer found the request invalid: a message too long for its receive \
                 request, or an operation it does not allow"
            }
            WcStatus::REM_ACCESS_ERR => {
                "the peer does not allow access to this memory: a wrong or expired key, beyond \
                 its bounds, an access it did not grant, or its program has just ended"
            }
            WcStatus::REM_OP_ERR => {
                "the peer could not do it: on rxe, a message was longer than its receive \
                 request, or its program has just ended"
            }
            WcStatus::RETRY_EXC_ERR => {
                "the peer did not acknowledge it: the peer or the network is down"
            }
            WcStatus::RNR_RETRY_EXC_ERR => "the peer had no receive request posted in time",
            WcStatus::FATAL_ERR => "the device is gone, or its context is closed",
            _ => return None,
        })
    }
}

impl fmt::Display for CompletionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, number, status) = (self.kind, self.qp_number, self.status);
        write!(f, "{kind} on queue pair {number:#x}: {status:?}")?;
        if self.vendor_error != 0 {
            write!(f, " (vendor {:#x})", self.vendor_error)?;
        }
        self.cause().map_or(Ok(()), |cause| write!(f, ": {cause}"))
    }
}

impl std::error::Error for CompletionError {}

#[cfg(test)]
mod tests {
    use super::*;
    use rdmacm_abi::uverbs::WrOpcode;

    fn failure(status: WcStatus, vendor_error: u32) -> CompletionError {
        let work = WorkId {
            queue: 1,
            number: 2,
        };
        CompletionError {
            status,
            vendor_error,
            qp_number: 0x11,
            work,
            kind: WorkKind::Send(WrOpcode::SEND),
        }
    }

    #[test]
    fn each_known_cause_is_explained() {
        for (status, words) in [
            (WcStatus::LOC_LEN_ERR, "longer than the receive request"),
            (WcStatus::LOC_QP_OP_ERR, "could not carry it out"),
            (WcStatus::LOC_PROT_ERR, "for this queue pair"),
            (WcStatus::WR_FLUSH_ERR, "went to the error state"),
            (WcStatus::LOC_ACCESS_ERR, "for this access"),
            (WcStatus::REM_INV_REQ_ERR, "found the request invalid"),
            (WcStatus::REM_ACCESS_ERR, "does not allow access"),
            (WcStatus::REM_OP_ERR, "could not do it"),
            (WcStatus::RETRY_EXC_ERR, "did not acknowledge"),
            (WcStatus::RNR_RETRY_EXC_ERR, "no receive request posted"),
            (WcStatus::FATAL_ERR, "its context is closed"),
        ] {
            let text = failure(status, 0).to_string();
            assert!(text.contains(words), "{text}");
            let begins = format!("SEND on queue pair 0x11: {status:?}: ");
            assert!(text.starts_with(&begins), "{text}");
            let flush = failure(status, 0).is_flush();
            assert_eq!(flush, status == WcStatus::WR_FLUSH_ERR);
            let gone = failure(status, 0).is_context_closed();
            assert_eq!(gone, status == WcStatus::FATAL_ERR);
        }
        let other = failure(WcStatus::GENERAL_ERR, 5);
        assert_eq!(other.cause(), None);
        let text = "SEND on queue pair 0x11: GENERAL_ERR (vendor 0x5)";
        assert_eq!(other.to_string(), text);
    }
}
