//! A request of a queue pair that failed.

use std::fmt;

use rdmacm_abi::uverbs::{WcStatus, WrOpcode};

/// A request of a queue pair that failed. The queue pair is in the error state then, and
/// its connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "ibv_wc")]
pub struct FailedRequest {
    /// The operation; `None` for a receive request.
    pub opcode: Option<WrOpcode>,
    /// The status of its completion.
    pub status: WcStatus,
    /// The device's own error number, which only its vendor can interpret; 0 if there is
    /// none.
    #[doc(alias = "vendor_err")]
    pub vendor_error: u32,
    /// The likely cause in words.
    pub cause: Option<&'static str>,
}

impl FailedRequest {
    /// A failed request without an error number or a cause of its device, as for tests of error
    /// handling.
    #[must_use]
    pub fn new(opcode: Option<WrOpcode>, status: WcStatus) -> Self {
        Self {
            opcode,
            status,
            vendor_error: 0,
            cause: None,
        }
    }

    /// Of a completion with an error.
    #[cfg(feature = "verbs")]
    pub(crate) fn from_completion(error: &rdmacm_verbs::CompletionError) -> Self {
        let opcode = match error.kind {
            rdmacm_verbs::WorkKind::Send(opcode) => Some(opcode),
            _ => None,
        };
        Self {
            vendor_error: error.vendor_error,
            cause: error.cause(),
            ..Self::new(opcode, error.status)
        }
    }

    /// The operation and the status, without the cause.
    pub(crate) fn summary(&self) -> impl fmt::Display {
        Summary(*self)
    }
}

struct Summary(FailedRequest);

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailedRequest { opcode, status, .. } = self.0;
        match opcode {
            Some(opcode) => write!(f, "{opcode:?}")?,
            None => f.write_str("RECEIVE")?,
        }
        write!(f, ": {status:?}")
    }
}

impl fmt::Display for FailedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.summary().fmt(f)?;
        if self.vendor_error != 0 {
            write!(f, " (vendor {:#x})", self.vendor_error)?;
        }
        self.cause.map_or(Ok(()), |cause| write!(f, ": {cause}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_operation_status_and_cause() {
        let mut failed = FailedRequest::new(Some(WrOpcode::SEND), WcStatus::RETRY_EXC_ERR);
        assert_eq!(failed.to_string(), "SEND: RETRY_EXC_ERR");
        failed.vendor_error = 7;
        failed.cause = Some("no acknowledgement");
        let text = "SEND: RETRY_EXC_ERR (vendor 0x7): no acknowledgement";
        assert_eq!(failed.to_string(), text);
        let receive = FailedRequest::new(None, WcStatus::LOC_LEN_ERR);
        assert_eq!(receive.to_string(), "RECEIVE: LOC_LEN_ERR");
    }
}
