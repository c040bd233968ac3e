//! rxe: RoCE v2 in software.

use rdmacm_abi::uverbs::rxe::{self, MapInfo, ModifySrq};
use rdmacm_abi::uverbs::{
    CreateAh, CreateAhResponse, CreateCq, CreateCqResponse, CreateQp, CreateSrq, CreateSrqResponse,
    DestroyCq, DestroyQp, DestroySrq, DriverId, GetContext, GetContextResponse, RegMr,
    RegMrResponse, Rxe as OfRxe,
};
use rdmacm_core::{QpType, Transport};

use super::{CompletionRing, NewQueuePair, Provider, ReceiveRing, Uverbs};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::request::SendOperation;

mod completions;
mod queue;
mod receives;
mod sends;
#[cfg(test)]
mod tests;

use completions::Completions;
use queue::Queue;
use receives::Receives;
use sends::Sends;

/// The driver `rdma_rxe`, version 2: RoCE v2 in software.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rxe;

// SAFETY: rxe completes a request when it has done with its memory
// (`rxe_completer`, `rxe_responder`), uses its queues in order, and looks at the
// elements that `Sends` and `Receives` write from the pieces they are given.
#[expect(unsafe_code, reason = "vouches for the driver")]
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

    fn can(&self, qp_type: QpType, operation: &SendOperation) -> bool {
        match operation {
            SendOperation::Send | SendOperation::SendWithImmediate(_) => true,
            SendOperation::Write(_) | SendOperation::WriteWithImmediate(..) => {
                qp_type != QpType::UD
            }
            _ => qp_type == QpType::RC,
        }
    }

    fn resets(&self) -> bool {
        // Linux 6.1 does not wait for a packet that is being worked on outside the
        // queue pair's tasklets (`rxe_disable_task`, `rxe_run_task`).
        true
    }

    fn open(&self, uverbs: &Uverbs) -> Result<GetContextResponse> {
        uverbs.ask(Operation::OpenContext, &OfRxe(GetContext::default()))
    }

    fn register(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: RegMr,
    ) -> Result<RegMrResponse> {
        uverbs.ask(operation, &OfRxe(request))
    }

    fn create_cq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateCq,
    ) -> Result<(CreateCqResponse, Box<dyn CompletionRing>)> {
        let answer = uverbs.ask(operation, &OfRxe(request))?;
        let ring = Completions::map(uverbs, operation, answer.queue)
            .inspect_err(|_| uverbs.undo(&DestroyCq::new(answer.common.handle)))?;
        Ok((answer.common, Box::new(ring)))
    }

    fn create_qp(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateQp,
    ) -> Result<NewQueuePair> {
        let shared = request.is_srq != 0;
        let answer = uverbs.ask(operation, &OfRxe(request))?;
        let undo = |_: &Error| uverbs.undo(&DestroyQp::new(answer.common.handle));
        let send = Sends::map(uverbs, operation, answer.queues.send).inspect_err(undo)?;
        let receive = (!shared)
            .then(|| Receives::map(uverbs, operation, answer.queues.receive))
            .transpose()
            .inspect_err(undo)?;
        Ok(NewQueuePair::new(answer.common, send, receive))
    }

    fn create_srq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateSrq,
    ) -> Result<(CreateSrqResponse, Box<dyn ReceiveRing>)> {
        let answer = uverbs.ask(operation, &OfRxe(request))?;
        let ring = Receives::map(uverbs, operation, answer.srq.queue)
            .inspect_err(|_| uverbs.undo(&DestroySrq::new(answer.common.handle)))?;
        Ok((answer.common, Box::new(ring)))
    }

    fn create_ah(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateAh,
    ) -> Result<(CreateAhResponse, u32)> {
        let answer = uverbs.ask(operation, &OfRxe(request))?;
        Ok((answer.common, answer.ah.number))
    }

    fn limit_srq(
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

/// The queue that an answer of the driver's describes.
fn map(uverbs: &Uverbs, operation: Operation, info: MapInfo) -> Result<Queue> {
    let mapping = uverbs.map(info.offset, info.size as usize)?;
    Queue::of(mapping).ok_or_else(|| super::nonsense(operation))
}

/// Whether the queue's slots have room for its elements.
fn holds<T>(queue: &Queue, operation: Operation) -> Result<()> {
    if queue.slots().stride() < size_of::<T>() {
        return Err(super::nonsense(operation));
    }
    Ok(())
}
