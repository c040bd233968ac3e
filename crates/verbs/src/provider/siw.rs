//! siw: iWARP in software.

use rdmacm_abi::uverbs::siw::{self, MrKey};
use rdmacm_abi::uverbs::{
    CommandNumber, CreateAh, CreateAhResponse, CreateCq, CreateCqResponse, CreateQp, CreateSrq,
    CreateSrqResponse, DestroyCq, DestroyQp, DestroySrq, DriverId, GetContext, GetContextResponse,
    ModifySrq, RegMr, RegMrResponse, Siw as OfSiw,
};
use rdmacm_core::{QpAttr, QpAttrMask, QpType, Transport};

use super::{CompletionRing, NewQueuePair, Provider, ReceiveRing, Uverbs};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::random;
use crate::request::SendOperation;

mod completions;
mod queue;
mod receives;
mod sends;
#[cfg(test)]
mod tests;

use completions::Completions;
use receives::Receives;
use sends::Sends;

/// The driver `siw`, version 1: iWARP in software. Reliable connections only, no
/// atomics and no immediate data.
///
/// Whoever has the key of memory can read it, with or without the right to: the key is
/// the guard. Its 32 bits are random: the driver draws 24 of them, this crate eight, each
/// from the kernel's generator, for each registration anew.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Siw;

// SAFETY: siw completes a request that is signalled when it has done with its memory
// (`siw_sqe_complete`, `siw_rqe_complete`). It sends and receives in RTS alone, with its
// lock on the state, and a move to ERR, which takes that lock as well, is for good
// (`siw_qp_sq_process`, `siw_qp_llp_data_ready`, `siw_qp_modify`). It looks at the elements that `Sends` and
// `Receives` write from the pieces they are given.
#[expect(unsafe_code, reason = "vouches for the driver")]
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

    fn tells(&self) -> QpAttrMask {
        QpAttrMask::STATE
            | QpAttrMask::CAP
            | QpAttrMask::PATH_MTU
            | QpAttrMask::ACCESS_FLAGS
            | QpAttrMask::MAX_QP_RD_ATOMIC
            | QpAttrMask::MAX_DEST_RD_ATOMIC
    }

    fn can(&self, qp_type: QpType, operation: &SendOperation) -> bool {
        qp_type == QpType::RC && sends::opcode(operation).is_some()
    }

    fn can_inline(&self, operation: &SendOperation) -> bool {
        // What it does not take it leaves in the queue, and all behind it
        // (`siw_activate_tx_from_sq`).
        matches!(operation, SendOperation::Send | SendOperation::Write(_))
    }

    fn completes_individually(&self) -> bool {
        // A message is complete when TCP has taken it, however long the answer to
        // a read before it takes (`siw_qp_sq_process`). And what is not signalled
        // TCP takes without a copy, and may send again from there.
        true
    }

    fn flushes_all(&self) -> bool {
        // It flushes its queues when the connection ends, takes requests all the same
        // (`siw_post_send`), and never looks at them in ERR (`siw_qp_modify`).
        false
    }

    fn initiator_depth(&self, attr: &QpAttr) -> u8 {
        // The other way round (`siw_query_qp`).
        attr.max_destination_rd_atomic
    }

    fn max_read_pieces(&self) -> u32 {
        1
    }

    fn open(&self, uverbs: &Uverbs) -> Result<GetContextResponse> {
        let answer = uverbs.ask(Operation::OpenContext, &OfSiw(GetContext::default()))?;
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
    ) -> Result<(CreateCqResponse, Box<dyn CompletionRing>)> {
        let answer = uverbs.ask(operation, &OfSiw(request))?;
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
        let answer = uverbs.ask(operation, &OfSiw(request))?;
        let queues = answer.queues;
        let undo = |_: &Error| uverbs.undo(&DestroyQp::new(answer.common.handle));
        let send = Sends::map(uverbs, operation, queues.send_offset, queues.send_entries)
            .inspect_err(undo)?;
        // With a shared queue none was asked for. The offset does not tell: a queue may
        // lie where `NO_QUEUE` says that there is none.
        let receive = (queues.receive_entries > 0)
            .then(|| {
                let (offset, entries) = (queues.receive_offset, queues.receive_entries);
                Receives::map(uverbs, operation, offset, entries)
            })
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
        let answer = uverbs.ask(operation, &OfSiw(request))?;
        let queue = answer.queue;
        let ring = Receives::map(uverbs, operation, queue.offset, queue.entries)
            .inspect_err(|_| uverbs.undo(&DestroySrq::new(answer.common.handle)))?;
        Ok((answer.common, Box::new(ring)))
    }

    fn create_ah(
        &self,
        _: &Uverbs,
        operation: Operation,
        _: CreateAh,
    ) -> Result<(CreateAhResponse, u32)> {
        Err(Error::invalid(operation, "iWARP has no datagrams"))
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
