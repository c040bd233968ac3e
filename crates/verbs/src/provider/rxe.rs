//! rxe: RoCE v2 in software.

use rdmacm_abi::uverbs::rxe::{self, ModifySrq, QpQueues, RecvWqe, SendWqe};
use rdmacm_abi::uverbs::{
    CreateAh, CreateAhResponse, CreateCq, CreateCqResponse, CreateQp, CreateSrq, CreateSrqResponse,
    DestroyCq, DestroyQp, DestroySrq, DriverId, GetContext, GetContextResponse, RegMr,
    RegMrResponse, Rxe as RxeCommand, WorkCompletion, WrOpcode,
};
use rdmacm_core::{QpType, Transport};

use super::{
    CompletionRings, NewQueuePair, Provider, ReceiveRings, SendRings, Uverbs, destroy_on_error,
};
use crate::error::Result;
use crate::opcodes::Opcodes;
use crate::operation::Operation;

mod completion_ring;
mod queue;
mod receive_ring;
mod send_ring;
#[cfg(test)]
mod tests;

use queue::Queue;
pub(crate) use queue::{IndexWatch, RingIndices};

/// Its send queues.
pub(crate) type SendQueue = Queue<SendWqe>;
/// Its receive queues, shared or not.
pub(crate) type ReceiveQueue = Queue<RecvWqe>;
/// Its completion queues.
pub(crate) type CompletionQueue = Queue<WorkCompletion>;

/// The driver `rdma_rxe`, version 2: RoCE v2 in software.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rxe;

// SAFETY:
// - rxe completes a request only after its last access to the request's memory
//   (`rxe_completer`, `rxe_responder`), and uses its queues in order. On Linux 6.1 the doorbell of
//   another thread (`rxe_run_task`) may still copy a packet of a send that was flushed: it reads
//   pages that stay pinned as long as their registration lives.
// - It accesses only the memory that the elements of its queues name; `Queue` writes them
//   from the scatter/gather entries it is given.
#[expect(unsafe_code, reason = "asserts how the driver uses memory")]
unsafe impl Provider for Rxe {
    fn driver(&self) -> DriverId {
        DriverId::RXE
    }

    fn abi_version(&self) -> u32 {
        rxe::ABI_VERSION
    }

    fn transport(&self) -> Transport {
        Transport::RoCE
    }

    fn operations(&self, qp_type: QpType) -> Opcodes {
        match qp_type {
            QpType::RC => Opcodes::ALL,
            QpType::UD => Opcodes::of(&[WrOpcode::SEND, WrOpcode::SEND_WITH_IMM]),
            _ => Opcodes::of(&[
                WrOpcode::SEND,
                WrOpcode::SEND_WITH_IMM,
                WrOpcode::RDMA_WRITE,
                WrOpcode::RDMA_WRITE_WITH_IMM,
            ]),
        }
    }

    fn resets(&self) -> bool {
        // Linux 6.1 does not wait for a packet that is being worked on outside the
        // queue pair's tasklets (`rxe_disable_task`, `rxe_run_task`).
        //
        // Newer kernels set the index of the next request to send to that of the oldest request in
        // the queue, and only then discard all requests: `rxe_qp_reset` runs `rxe_sender` once,
        // which calls `rxe_requester` before `rxe_completer`. Between the two indices are zeros
        // (`rxe_queue_reset`), writes without bytes, which would go to the next peer. The queue of
        // the second move is empty. Linux 6.1 runs them in the other order.
        true
    }

    fn open(&self, uverbs: &Uverbs) -> Result<GetContextResponse> {
        uverbs.ask(Operation::OpenContext, &RxeCommand(GetContext::default()))
    }

    fn register(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: RegMr,
    ) -> Result<RegMrResponse> {
        uverbs.ask(operation, &RxeCommand(request))
    }

    fn create_cq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateCq,
    ) -> Result<(CreateCqResponse, CompletionRings)> {
        let answer = uverbs.ask(operation, &RxeCommand(request))?;
        let ring = Queue::<WorkCompletion>::map(uverbs, operation, answer.queue);
        let ring = destroy_on_error(uverbs, &DestroyCq::new(answer.common.handle), ring)?;
        Ok((answer.common, CompletionRings::Rxe(ring)))
    }

    fn create_qp(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateQp,
    ) -> Result<NewQueuePair> {
        let has_receive_queue = request.is_srq == 0;
        let answer = uverbs.ask(operation, &RxeCommand(request))?;
        let rings = map_queues(uverbs, operation, &answer.queues, has_receive_queue);
        let (send, receive) =
            destroy_on_error(uverbs, &DestroyQp::new(answer.common.handle), rings)?;
        Ok(NewQueuePair {
            answer: answer.common,
            send: SendRings::Rxe(send),
            receive: receive.map(ReceiveRings::Rxe),
        })
    }

    fn create_srq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateSrq,
    ) -> Result<(CreateSrqResponse, ReceiveRings)> {
        let answer = uverbs.ask(operation, &RxeCommand(request))?;
        let ring = Queue::<RecvWqe>::map(uverbs, operation, answer.srq.queue);
        let ring = destroy_on_error(uverbs, &DestroySrq::new(answer.common.handle), ring)?;
        Ok((answer.common, ReceiveRings::Rxe(ring)))
    }

    fn create_ah(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateAh,
    ) -> Result<(CreateAhResponse, u32)> {
        let answer = uverbs.ask(operation, &RxeCommand(request))?;
        Ok((answer.common, answer.ah.number))
    }

    fn set_srq_limit(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        handle: u32,
        limit: u32,
    ) -> Result<()> {
        let request = ModifySrq::limit(handle, limit);
        uverbs.ask(operation, &request).map(drop)
    }
}

/// Maps the send queue, and the receive queue unless the queue pair uses a shared one.
fn map_queues(
    uverbs: &Uverbs,
    operation: Operation,
    queues: &QpQueues,
    has_receive_queue: bool,
) -> Result<(SendQueue, Option<ReceiveQueue>)> {
    let send = Queue::map(uverbs, operation, queues.send)?;
    let receive = has_receive_queue
        .then(|| Queue::map(uverbs, operation, queues.receive))
        .transpose()?;
    Ok((send, receive))
}
