//! Commands of shared receive queues.

use nix::errno::Errno;
use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::rxe::{self, RecvWqe};
use rdmacm_abi::uverbs::{
    CreateSrq, CreateSrqResponse, DestroySrq, DestroySrqResponse, ModifySrq, QuerySrq,
    QuerySrqResponse, Sge, SrqAttrMask, siw,
};
use rdmacm_verbs::Call;

use super::query::{Limits, MAX_WR};
use super::{errno, read, respond};
use crate::verbs::Verbs;
use crate::verbs::format::Format;
use crate::verbs::shared_receive_queue::SharedReceiveQueue;
use crate::verbs::slots::Slots;
use crate::verbs::work_queue::WorkQueue;

impl Verbs {
    fn own_shared_receive_queue(
        &mut self,
        context: u64,
        handle: u32,
    ) -> Result<&mut SharedReceiveQueue, Errno> {
        let queue = self.shared_receive_queues.get_mut(&handle);
        let queue = queue.filter(|queue| queue.context == context);
        queue.ok_or(Errno::EINVAL)
    }

    /// Whether a shared receive queue is this context's.
    pub(super) fn has_shared_receive_queue(&self, context: u64, handle: u32) -> bool {
        let queue = self.shared_receive_queues.get(&handle);
        queue.is_some_and(|queue| queue.context == context)
    }
}

pub(super) fn create(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let request: CreateSrq = read(call)?;
    verbs.check_domain(context, request.pd)?;
    let sge = Limits::of(verbs.format).sge_of_shared_receive;
    if request.max_wr == 0 || request.max_wr > MAX_WR || request.max_sge > sge {
        return Err(Errno::EINVAL);
    }
    let (response, queue) = match verbs.format {
        Format::Rxe => create_rxe(verbs, context, &request, call)?,
        Format::Siw => create_siw(verbs, context, &request, call)?,
    };
    let (owner, max_sge) = ((context, request.pd), response.max_sge);
    let mut queue = SharedReceiveQueue::new(owner, request.user_handle, max_sge, queue);
    queue.set_limit(request.limit);
    verbs.shared_receive_queues.insert(response.handle, queue);
    Ok(())
}

/// `rxe_create_srq`.
fn create_rxe(
    verbs: &mut Verbs,
    context: u64,
    request: &CreateSrq,
    call: &mut Call<'_>,
) -> Result<(CreateSrqResponse, WorkQueue), Errno> {
    let max_sge = request.max_sge.max(1);
    let sges = usize::try_from(max_sge).unwrap_or(0) * size_of::<Sge>();
    let memory = &mut verbs.context(context)?.rings;
    let ring = memory.ring(request.max_wr, size_of::<RecvWqe>() + sges);
    let ring = ring.map_err(|error| errno(&error))?;
    let handle = verbs.next_handle()?;
    let response = rxe::SrqResponse {
        common: CreateSrqResponse {
            handle,
            max_wr: ring.capacity(),
            max_sge,
            number: 0,
        },
        srq: rxe::SrqQueue {
            queue: ring.map_info(),
            number: handle,
            reserved: Reserved::ZERO,
        },
    };
    respond(call, &response)?;
    Ok((response.common, WorkQueue::Rxe(ring)))
}

/// `siw_create_srq`.
fn create_siw(
    verbs: &mut Verbs,
    context: u64,
    request: &CreateSrq,
    call: &mut Call<'_>,
) -> Result<(CreateSrqResponse, WorkQueue), Errno> {
    if request.limit > request.max_wr {
        return Err(Errno::EINVAL);
    }
    let memory = &mut verbs.context(context)?.rings;
    let slots = Slots::receives(memory, request.max_wr).map_err(|error| errno(&error))?;
    let response = siw::SrqResponse {
        common: CreateSrqResponse {
            handle: verbs.next_handle()?,
            max_wr: request.max_wr,
            max_sge: request.max_sge,
            number: 0,
        },
        queue: siw::SrqQueue {
            entries: slots.capacity(),
            padding: Reserved::ZERO,
            offset: slots.offset(),
        },
    };
    respond(call, &response)?;
    Ok((response.common, WorkQueue::Siw(slots)))
}

/// Changes the limit. rxe also resizes queues, for which it writes to an address in the request;
/// the simulation does not.
pub(super) fn modify(verbs: &mut Verbs, context: u64, call: &Call<'_>) -> Result<(), Errno> {
    let request: ModifySrq = read(call)?;
    // `rxe_modify_srq` wants the address in any case.
    let is_short = call.request().len() < size_of::<rxe::ModifySrq>();
    let is_rxe = verbs.format == Format::Rxe;
    let queue = verbs.own_shared_receive_queue(context, request.handle)?;
    if is_rxe && is_short {
        return Err(Errno::EINVAL);
    }
    if request.mask.contains(SrqAttrMask::MAX_WR) {
        return Err(Errno::EOPNOTSUPP);
    }
    if request.mask.contains(SrqAttrMask::LIMIT) {
        if request.limit > queue.capacity() {
            return Err(Errno::EINVAL);
        }
        queue.set_limit(request.limit);
    }
    Ok(())
}

pub(super) fn query(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let request: QuerySrq = read(call)?;
    let queue = verbs.own_shared_receive_queue(context, request.handle)?;
    let response = QuerySrqResponse {
        max_wr: queue.capacity(),
        max_sge: queue.max_sge,
        limit: queue.limit(),
        reserved: Reserved::ZERO,
    };
    respond(call, &response)
}

pub(super) fn destroy(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let request: DestroySrq = read(call)?;
    verbs.own_shared_receive_queue(context, request.handle)?;
    let mut queue_pairs = verbs.queue_pairs.values();
    if queue_pairs.any(|one| one.receives.is_shared(request.handle)) {
        return Err(Errno::EBUSY);
    }
    respond(call, &DestroySrqResponse { events_reported: 0 })?;
    verbs.shared_receive_queues.remove(&request.handle);
    Ok(())
}
