//! Completions of requests.

use std::fmt;

use rdmacm_abi::uverbs::{WcOpcode, WrOpcode};

use crate::memory::SgList;
use crate::request_id::SHARED;
use crate::token::Token;

mod failure;
mod report;

pub use failure::CompletionError;
pub(crate) use report::Report;

/// The id of a posted request, which its completion repeats. Unique among the outstanding requests
/// of its context: it is used again after 2³² requests of its queue, or 2²⁸ queue pairs of its
/// context. In a shared receive queue of n entries, rounded up to a power of two, it may be used
/// again after 2³²/n requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "wr_id")]
pub struct WorkId {
    pub(crate) queue: u32,
    pub(crate) number: u32,
}

impl WorkId {
    /// What the ids of requests have of a work queue of a queue pair.
    pub(crate) fn own_queue(token: Token) -> u32 {
        u32::try_from(token.handle() & u64::from(!SHARED)).unwrap_or_default()
    }

    /// What the ids of requests have of a shared receive queue.
    pub(crate) fn shared_queue(number: u32) -> u32 {
        number | SHARED
    }

    /// Whether the request was posted before another one of the same queue, which may have been
    /// posted up to 2³¹ requests later. Only for requests of a queue pair's own queues: the ids of
    /// a shared receive queue are not in the order of posting.
    #[must_use]
    pub fn is_before(self, other: Self) -> bool {
        let ahead = other.number.wrapping_sub(self.number);
        self.queue == other.queue && ahead != 0 && ahead <= u32::MAX / 2
    }
}

/// The ids of requests that were posted together, in the order of posting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkIds {
    queue: u32,
    next: u32,
    end: u32,
}

impl WorkIds {
    pub(crate) fn new(queue: u32, next: u32, end: u32) -> Self {
        Self { queue, next, end }
    }
}

impl Iterator for WorkIds {
    type Item = WorkId;

    fn next(&mut self) -> Option<WorkId> {
        if self.next == self.end {
            return None;
        }
        let number = self.next;
        // Numbers wrap around.
        self.next = number.wrapping_add(1);
        let queue = self.queue;
        Some(WorkId { queue, number })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.wrapping_sub(self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for WorkIds {}

/// The result of a request, and its memory.
#[doc(alias = "ibv_wc")]
#[must_use = "it holds the request's memory"]
pub struct Completion {
    /// The request.
    #[doc(alias = "wr_id")]
    pub work: WorkId,
    /// The memory of the request.
    pub sg_list: SgList,
    /// The number of the queue pair.
    pub(crate) qp_number: u32,
    pub(crate) report: Report,
}

impl Completion {
    /// The number of the queue pair; 0 for a request of a shared receive queue that no queue pair had
    /// used when the context was closed.
    #[must_use]
    #[doc(alias = "qp_num")]
    #[inline]
    pub fn qp_number(&self) -> u32 {
        self.qp_number
    }

    /// The fields of the work completion (`ibv_wc`), or the error.
    ///
    /// # Errors
    /// [`CompletionError`] if the request failed or was flushed.
    #[doc(alias = "status")]
    #[inline]
    pub fn result(&self) -> Result<CompletionInfo, CompletionError> {
        let failed = |(status, vendor_error, kind)| CompletionError {
            status,
            vendor_error,
            qp_number: self.qp_number,
            work: self.work,
            kind,
        };
        self.report.done().map_err(failed)
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("work", &self.work)
            .field("qp_number", &self.qp_number())
            .field("result", &self.result())
            .field("sg_list", &self.sg_list)
            .finish_non_exhaustive()
    }
}

/// The work completion of a successful request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionInfo {
    /// The kind of the request.
    pub opcode: WcOpcode,
    /// Bytes received, of a receive request; of a datagram including the 40 bytes before it. Those of
    /// [`RECV_RDMA_WITH_IMM`](WcOpcode::RECV_RDMA_WITH_IMM) are in the memory that the peer has
    /// written to, none of them in the request's. Meaningless for send requests.
    #[doc(alias = "byte_len")]
    pub bytes: u32,
    /// The immediate data, in host order.
    #[doc(alias = "imm_data")]
    pub immediate: Option<u32>,
    /// The invalidated key of this side's memory. siw does not report it, and rxe invalidates no
    /// memory of this library.
    #[doc(alias = "invalidated_rkey")]
    pub invalidated: Option<u32>,
    /// The sender of a datagram.
    pub source: DatagramSource,
}

/// The sender of a datagram; meaningless for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramSource {
    /// The number of the sender's queue pair.
    #[doc(alias = "src_qp")]
    pub qp_number: u32,
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

impl DatagramSource {
    const NONE: Self = Self {
        qp_number: 0,
        has_grh: false,
        pkey_index: 0,
        lid: 0,
        path_bits: 0,
        service_level: 0,
    };
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

#[cfg(test)]
mod tests {
    use super::*;
    use rdmacm_abi::Be32;
    use rdmacm_abi::uverbs::{ImmediateOrKey, WcFlags, WcStatus, WorkCompletion};
    use zerocopy::FromZeros;

    const WORK: WorkId = WorkId {
        queue: 7,
        number: 9,
    };

    #[test]
    fn no_shared_receive_queue_has_the_ids_of_a_queue_pair() {
        for number in [0, 7, u32::MAX / 2 - 1] {
            let token = Token::new(1 << 40 | u64::from(number));
            assert_eq!(WorkId::own_queue(token), number);
            assert_ne!(WorkId::shared_queue(number), number);
        }
    }

    #[test]
    fn ids_of_requests_posted_together_wrap_around() {
        let mut ids = WorkIds::new(7, u32::MAX, 1);
        assert_eq!(ids.len(), 2);
        let numbers: Vec<_> = ids.by_ref().map(|one| (one.queue, one.number)).collect();
        assert_eq!(numbers, [(7, u32::MAX), (7, 0)]);
        assert_eq!(ids.next(), None);
    }

    #[test]
    fn numbers_that_wrap_around_keep_their_order() {
        let work = |number| WorkId { queue: 7, number };
        for (first, last) in [(0, 1), (u32::MAX, 0), (u32::MAX - 5, 9), (1, 1 << 31)] {
            assert!(work(first).is_before(work(last)), "{first} {last}");
            assert!(!work(last).is_before(work(first)), "{first} {last}");
        }
        assert!(!WORK.is_before(WORK));
        assert!(!WORK.is_before(WorkId {
            queue: 8,
            ..work(10)
        }));
    }

    /// It is moved to the caller.
    #[test]
    fn a_completion_is_small() {
        assert!(size_of::<Option<Completion>>() <= 80);
    }

    fn completion(kind: WorkKind, wc: &WorkCompletion) -> Completion {
        Completion {
            work: WORK,
            sg_list: SgList::NONE,
            qp_number: wc.qp_number,
            report: Report::of(kind, wc),
        }
    }

    fn done(kind: WorkKind, flags: WcFlags) -> CompletionInfo {
        let wc = WorkCompletion {
            flags,
            immediate_or_key: ImmediateOrKey::from_immediate(Be32::new(0x1234)),
            byte_len: 5,
            source_qp_number: 6,
            pkey_index: 7,
            source_lid: 8,
            destination_path_bits: 9,
            service_level: 10,
            ..WorkCompletion::new_zeroed()
        };
        completion(kind, &wc).result().unwrap()
    }

    #[test]
    fn what_a_message_came_with_is_by_its_flags() {
        let received = |flags| done(WorkKind::Receive, flags);
        let with = received(WcFlags::WITH_IMM | WcFlags::GRH);
        assert_eq!((with.immediate, with.invalidated), (Some(0x1234), None));
        assert_eq!((with.bytes, with.source.qp_number), (5, 6));
        assert!(with.source.has_grh);
        assert_eq!((with.source.pkey_index, with.source.lid), (7, 8));
        assert_eq!((with.source.path_bits, with.source.service_level), (9, 10));
        let key = 0x1234_u32.to_be();
        let invalidated = received(WcFlags::WITH_INVALIDATE);
        assert_eq!(invalidated.invalidated, Some(key));
        assert!(invalidated.immediate.is_none() && !invalidated.source.has_grh);
        let sent = done(WorkKind::Send(WrOpcode::SEND), WcFlags::all());
        assert_eq!((sent.opcode, sent.bytes), (WcOpcode::SEND, 5));
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
        let failure = completion(WorkKind::Receive, &wc).result().unwrap_err();
        assert_eq!((failure.status, failure.vendor_error), (wc.status, 3));
        assert_eq!((failure.qp_number, failure.work), (0x11, WORK));
        assert_eq!(failure.kind, WorkKind::Receive);
        let write = WorkKind::Send(WrOpcode::RDMA_WRITE);
        assert_eq!(completion(write, &wc).result().unwrap_err().kind, write);
        assert_eq!(WorkKind::Send(WrOpcode::RDMA_READ).to_string(), "RDMA_READ");
        assert_eq!(WorkKind::Receive.to_string(), "RECEIVE");
    }
}
