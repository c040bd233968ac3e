//! siw: iWARP in software.

use rdmacm_abi::uverbs::siw::{self, MrKey, QpQueues, Rqe, Sqe};
use rdmacm_abi::uverbs::{
    CommandNumber, CreateAh, CreateAhResponse, CreateCq, CreateCqResponse, CreateQp, CreateSrq,
    CreateSrqResponse, DestroyCq, DestroyQp, DestroySrq, DriverId, GetContext, GetContextResponse,
    RegMr, RegMrResponse, Siw as SiwCommand, WrOpcode,
};
use rdmacm_core::{QpAttr, QpAttrMask, QpType, Transport};

use super::{
    CompletionRings, NewQueuePair, Provider, ReceiveRings, SendRings, Uverbs, destroy_on_error,
};
use crate::error::{Error, Result};
use crate::opcodes::Opcodes;
use crate::operation::Operation;
use crate::random;

mod completion_ring;
mod queue;
mod receive_ring;
mod send_ring;
#[cfg(test)]
mod tests;

use completion_ring::CompletionSlots;
pub(super) use completion_ring::is_valid;
use queue::Queue;

/// Its send queues.
pub(crate) type SendQueue = Queue<Sqe>;
/// Its receive queues, shared or not.
pub(crate) type ReceiveQueue = Queue<Rqe>;
/// Its completion queues.
pub(crate) type CompletionQueue = CompletionSlots;

/// The driver `siw`, version 1: iWARP in software. Reliable connections only, no
/// atomics and no immediate data.
///
/// siw does not check the right to read: any peer that has the key of a memory region can
/// read it. The 32 bits of a key are therefore random: for each registration the driver
/// draws 24 bits and this crate 8, from the kernel's generator.
///
/// Before Linux 7.3, a hostile peer that answers a read can make siw write beyond the read's entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Siw;

// SAFETY:
// - siw completes a signalled request only after its last access to the request's memory
//   (`siw_sqe_complete`, `siw_rqe_complete`).
// - It sends and receives only in RTS, under its state lock. A move to ERR takes that lock
//   too and is final (`siw_qp_sq_process`, `siw_qp_llp_data_ready`, `siw_qp_modify`).
// - It accesses only the memory that the elements of its queues name; `Queue` writes them
//   from the scatter/gather entries it is given.
// - Except that siw of Linux 6.1, and of later kernels up to 7.1, checks the length of a read's
//   answer in the first segment only (`siw_proc_rresp`, `siw_rresp_check_ntoh`). A peer that sends
//   more writes behind the entry, up to the end of the last page that is registered
//   (`siw_get_upage`): `overruns_reads` says so. siw of Linux 7.3 checks each segment.
#[expect(unsafe_code, reason = "asserts how the driver uses memory")]
unsafe impl Provider for Siw {
    fn driver(&self) -> DriverId {
        DriverId::SIW
    }

    fn abi_version(&self) -> u32 {
        siw::ABI_VERSION
    }

    fn transport(&self) -> Transport {
        Transport::IWarp
    }

    fn queryable_attributes(&self) -> QpAttrMask {
        QpAttrMask::STATE
            | QpAttrMask::CAP
            | QpAttrMask::PATH_MTU
            | QpAttrMask::ACCESS_FLAGS
            | QpAttrMask::MAX_QP_RD_ATOMIC
            | QpAttrMask::MAX_DEST_RD_ATOMIC
    }

    fn operations(&self, qp_type: QpType) -> Opcodes {
        match qp_type {
            QpType::RC => Opcodes::of(&[
                WrOpcode::SEND,
                WrOpcode::SEND_WITH_INV,
                WrOpcode::RDMA_WRITE,
                WrOpcode::RDMA_READ,
            ]),
            _ => Opcodes::NONE,
        }
    }

    fn inline_operations(&self) -> Opcodes {
        // siw stops at an inline request of another operation and leaves it and all later
        // requests in the queue (`siw_activate_tx_from_sq`).
        Opcodes::of(&[WrOpcode::SEND, WrOpcode::RDMA_WRITE])
    }

    fn completes_individually(&self) -> bool {
        // A message completes once the TCP socket has accepted it, even if an earlier read
        // is still outstanding (`siw_qp_sq_process`). The socket accepts an unsignalled
        // message without a copy, and may retransmit from its memory later.
        true
    }

    fn flushes_all(&self) -> bool {
        // siw flushes its queues when the connection ends. It still accepts requests
        // afterwards (`siw_post_send`), but never processes them in ERR (`siw_qp_modify`).
        false
    }

    fn initiator_depth(&self, attr: &QpAttr) -> u8 {
        // siw reports the two depths swapped (`siw_query_qp`).
        attr.max_destination_rd_atomic
    }

    fn max_read_sges(&self) -> u32 {
        1
    }

    fn overruns_reads(&self) -> bool {
        true
    }

    fn open(&self, uverbs: &Uverbs) -> Result<GetContextResponse> {
        let answer = uverbs.ask(Operation::OpenContext, &SiwCommand(GetContext::default()))?;
        Ok(answer.common)
    }

    fn register(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: RegMr,
    ) -> Result<RegMrResponse> {
        let key = random::byte();
        let key = key.map_err(|error| Error::command(operation, CommandNumber::REG_MR, &error))?;
        let request = siw::RegMr {
            common: request,
            key: MrKey::new(key),
        };
        Ok(uverbs.ask(operation, &request)?.common)
    }

    fn create_cq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateCq,
    ) -> Result<(CreateCqResponse, CompletionRings)> {
        let answer = uverbs.ask(operation, &SiwCommand(request))?;
        let ring = CompletionSlots::map(uverbs, operation, answer.queue);
        let ring = destroy_on_error(uverbs, &DestroyCq::new(answer.common.handle), ring)?;
        Ok((answer.common, CompletionRings::Siw(ring)))
    }

    fn create_qp(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateQp,
    ) -> Result<NewQueuePair> {
        let answer = uverbs.ask(operation, &SiwCommand(request))?;
        let rings = map_queues(uverbs, operation, &answer.queues);
        let (send, receive) =
            destroy_on_error(uverbs, &DestroyQp::new(answer.common.handle), rings)?;
        Ok(NewQueuePair {
            answer: answer.common,
            send: SendRings::Siw(send),
            receive: receive.map(ReceiveRings::Siw),
        })
    }

    fn create_srq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateSrq,
    ) -> Result<(CreateSrqResponse, ReceiveRings)> {
        let answer = uverbs.ask(operation, &SiwCommand(request))?;
        let (offset, entries) = (answer.queue.offset, answer.queue.entries);
        let ring = Queue::<Rqe>::map(uverbs, operation, offset, entries);
        let ring = destroy_on_error(uverbs, &DestroySrq::new(answer.common.handle), ring)?;
        Ok((answer.common, ReceiveRings::Siw(ring)))
    }

    fn create_ah(
        &self,
        _: &Uverbs,
        operation: Operation,
        _: CreateAh,
    ) -> Result<(CreateAhResponse, u32)> {
        Err(Error::invalid(operation, "iWARP has no datagrams"))
    }
}

/// Maps the send queue, and the receive queue unless the queue pair uses a shared one: then
/// it has no entries. Its offset does not show that: `NO_QUEUE` is also a valid offset.
fn map_queues(
    uverbs: &Uverbs,
    operation: Operation,
    queues: &QpQueues,
) -> Result<(Queue<Sqe>, Option<Queue<Rqe>>)> {
    let send = Queue::map(uverbs, operation, queues.send_offset, queues.send_entries)?;
    let receive = (queues.receive_entries > 0)
        .then(|| {
            let (offset, entries) = (queues.receive_offset, queues.receive_entries);
            Queue::map(uverbs, operation, offset, entries)
        })
        .transpose()?;
    Ok((send, receive))
}
