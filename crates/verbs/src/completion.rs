//! Completions of requests.

use std::fmt;

use rdmacm_abi::uverbs::{WcFlags, WcOpcode, WcStatus, WorkCompletion, WrOpcode};

use crate::memory::SgList;

mod failure;

pub use failure::CompletionError;

/// The id of a posted request, which its completion repeats. Unique in its context while
/// its queue exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "wr_id")]
pub struct WorkId {
    pub(crate) queue: u32,
    pub(crate) number: u32,
}

impl WorkId {
    pub(crate) fn of(number: u64) -> Self {
        let [queue, number] = [number >> 32, number & 0xffff_ffff];
        Self {
            // Each is a half.
            queue: u32::try_from(queue).unwrap_or_default(),
            number: u32::try_from(number).unwrap_or_default(),
        }
    }

    pub(crate) fn to_number(self) -> u64 {
        u64::from(self.queue) << 32 | u64::from(self.number)
    }
}

/// The result of a request, and its memory.
#[derive(Debug)]
#[doc(alias = "ibv_wc")]
#[must_use = "it holds the request's memory"]
pub struct Completion {
    /// The request.
    #[doc(alias = "wr_id")]
    pub work: WorkId,
    /// The number of the queue pair.
    #[doc(alias = "qp_num")]
    pub queue_pair: u32,
    /// What was done, or the error.
    pub result: Result<Done, CompletionError>,
    /// The memory of the request.
    pub sg_list: SgList,
    /// The unsignalled requests before it, and their memory. They succeeded if this one did.
    pub earlier: Vec<(WorkId, SgList)>,
}

/// A successful request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// The kind of the request.
    pub opcode: WcOpcode,
    /// Bytes received, of a receive request; of a datagram including the 40 bytes before it.
    #[doc(alias = "byte_len")]
    pub bytes: u32,
    /// The immediate data, in host order.
    #[doc(alias = "imm_data")]
    pub immediate: Option<u32>,
    /// The invalidated key of this side's memory. siw does not report it.
    #[doc(alias = "invalidated_rkey")]
    pub invalidated: Option<u32>,
    /// The sender of a datagram.
    pub source: DatagramSource,
}

/// The sender of a datagram; meaningless for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramSource {
    /// The sender's queue pair.
    #[doc(alias = "src_qp")]
    pub queue_pair: u32,
    /// Whether the first 40 bytes are a [`Grh`](crate::Grh).
    #[doc(alias = "IBV_WC_GRH")]
    pub has_grh: bool,
    /// The index of the partition key.
    pub pkey_index: u16,
    /// The sender's LID.
    #[doc(alias = "slid")]
    pub lid: u16,
    /// The low bits of the LID that it was sent to.
    #[doc(alias = "dlid_path_bits")]
    pub path_bits: u8,
    /// The service level.
    #[doc(alias = "sl")]
    pub service_level: u8,
}

/// The kind of a request, for its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkKind {
    /// A send request.
    Send(WrOpcode),
    /// A receive request.
    Receive,
}

impl fmt::Display for WorkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(opcode) => write!(f, "{opcode:?}"),
            Self::Receive => f.write_str("RECEIVE"),
        }
    }
}

/// Reads the device's completion of a request of this kind.
pub(crate) fn result(
    kind: WorkKind,
    work: WorkId,
    wc: &WorkCompletion,
) -> Result<Done, CompletionError> {
    if wc.status != WcStatus::SUCCESS {
        return Err(CompletionError {
            status: wc.status,
            vendor: wc.vendor_error,
            queue_pair: wc.qp_number,
            work,
            kind,
        });
    }
    let received = kind == WorkKind::Receive;
    let with = |flag| received && wc.flags.contains(flag);
    Ok(Done {
        opcode: wc.opcode,
        bytes: wc.byte_len,
        immediate: with(WcFlags::WITH_IMM).then(|| wc.immediate_or_key.immediate().get()),
        invalidated: with(WcFlags::WITH_INVALIDATE).then(|| wc.immediate_or_key.key()),
        source: DatagramSource {
            queue_pair: wc.source_qp_number,
            has_grh: with(WcFlags::GRH),
            pkey_index: wc.pkey_index,
            lid: wc.source_lid,
            path_bits: wc.destination_path_bits,
            service_level: wc.service_level,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdmacm_abi::Be32;
    use rdmacm_abi::uverbs::ImmediateOrKey;
    use zerocopy::FromZeros;

    const WORK: WorkId = WorkId {
        queue: 7,
        number: 9,
    };

    #[test]
    fn a_request_is_named_by_both_its_numbers() {
        for work in [
            WORK,
            WorkId {
                queue: u32::MAX,
                number: 1,
            },
        ] {
            assert_eq!(WorkId::of(work.to_number()), work);
        }
        assert_eq!(WORK.to_number(), 0x7_0000_0009);
    }

    fn done(kind: WorkKind, flags: WcFlags) -> Done {
        let wc = WorkCompletion {
            flags,
            immediate_or_key: ImmediateOrKey::from_immediate(Be32::new(0x1234)),
            byte_len: 5,
            source_qp_number: 6,
            ..WorkCompletion::new_zeroed()
        };
        result(kind, WORK, &wc).unwrap()
    }

    #[test]
    fn only_what_was_received_came_with_something() {
        let receive = WorkKind::Receive;
        let with = done(receive, WcFlags::WITH_IMM | WcFlags::GRH);
        assert_eq!((with.immediate, with.invalidated), (Some(0x1234), None));
        assert_eq!((with.bytes, with.source.queue_pair), (5, 6));
        assert!(with.source.has_grh);
        let key = 0x1234_u32.to_be();
        let invalidated = done(receive, WcFlags::WITH_INVALIDATE);
        assert_eq!(invalidated.invalidated, Some(key));
        assert!(invalidated.immediate.is_none() && !invalidated.source.has_grh);
        let all = WcFlags::WITH_IMM | WcFlags::WITH_INVALIDATE | WcFlags::GRH;
        let sent = done(WorkKind::Send(WrOpcode::SEND), all);
        assert_eq!((sent.immediate, sent.invalidated), (None, None));
        assert!(!sent.source.has_grh);
    }

    #[test]
    fn a_failure_says_which_request_it_was() {
        let wc = WorkCompletion {
            status: WcStatus::REM_ACCESS_ERR,
            vendor_error: 3,
            qp_number: 0x11,
            ..WorkCompletion::new_zeroed()
        };
        let kind = WorkKind::Send(WrOpcode::RDMA_READ);
        let failure = result(kind, WORK, &wc).unwrap_err();
        assert_eq!((failure.status, failure.vendor), (wc.status, 3));
        assert_eq!((failure.queue_pair, failure.work), (0x11, WORK));
        assert_eq!(failure.kind, kind);
        assert_eq!(kind.to_string(), "RDMA_READ");
        assert_eq!(WorkKind::Receive.to_string(), "RECEIVE");
    }
}
