//! Commands of completion queues.

use nix::errno::Errno;
use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::{
    CreateCq, CreateCqResponse, DestroyCq, DestroyCqResponse, ReqNotifyCq, ResizeCq,
    ResizeCqResponse, WorkCompletion, rxe, siw,
};
use rdmacm_verbs::Call;

use super::query::MAX_CQE;
use super::{errno, read, respond};
use crate::verbs::Verbs;
use crate::verbs::completion_queue::{Armed, CompletionQueue, CompletionRing};
use crate::verbs::event_stream::StreamId;
use crate::verbs::format::Format;
use crate::verbs::ring::{Ring, RingMemory};
use crate::verbs::slots::CompletionSlots;

impl Verbs {
    fn completion_queue(
        &mut self,
        context: u64,
        handle: u32,
    ) -> Result<&mut CompletionQueue, Errno> {
        let queue = self.completion_queues.get_mut(&handle);
        let queue = queue.filter(|queue| queue.context == context);
        queue.ok_or(Errno::EINVAL)
    }

    fn completion_memory(&mut self, context: u64, entries: u32) -> Result<&mut RingMemory, Errno> {
        if entries == 0 || entries > MAX_CQE {
            return Err(Errno::EINVAL);
        }
        Ok(&mut self.context(context)?.rings)
    }

    fn completion_ring(&mut self, context: u64, entries: u32) -> Result<Ring, Errno> {
        let memory = self.completion_memory(context, entries)?;
        let ring = memory.ring(entries, size_of::<WorkCompletion>());
        ring.map_err(|error| errno(&error))
    }

    /// The channel that a descriptor belongs to; `None` for -1.
    fn channel_of(&self, context: u64, descriptor: i32) -> Result<Option<StreamId>, Errno> {
        if descriptor < 0 {
            return Ok(None);
        }
        let id = StreamId::of(descriptor).ok_or(Errno::EBADF)?;
        let channel = self.channels.get(&id);
        let is_own = channel.is_some_and(|channel| channel.context == context);
        is_own.then_some(Some(id)).ok_or(Errno::EINVAL)
    }
}

pub(super) fn create(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let request: CreateCq = read(call)?;
    let channel = verbs.channel_of(context, request.completion_channel)?;
    let ring = match verbs.format {
        Format::Rxe => create_rxe(verbs, context, request.entries, call)?,
        Format::Siw => create_siw(verbs, context, request.entries, call)?,
    };
    // That of the response.
    let handle = verbs.last_handle;
    let queue = CompletionQueue {
        context,
        user_handle: request.user_handle,
        ring,
        channel,
    };
    verbs.completion_queues.insert(handle, queue);
    Ok(())
}

/// `rxe_create_cq`.
fn create_rxe(
    verbs: &mut Verbs,
    context: u64,
    entries: u32,
    call: &mut Call<'_>,
) -> Result<CompletionRing, Errno> {
    let ring = verbs.completion_ring(context, entries)?;
    let response = rxe::CqResponse {
        common: CreateCqResponse {
            handle: verbs.next_handle()?,
            entries: ring.capacity(),
        },
        queue: ring.map_info(),
    };
    respond(call, &response)?;
    let armed = Armed::None;
    Ok(CompletionRing::Rxe { ring, armed })
}

/// `siw_create_cq`.
fn create_siw(
    verbs: &mut Verbs,
    context: u64,
    entries: u32,
    call: &mut Call<'_>,
) -> Result<CompletionRing, Errno> {
    let memory = verbs.completion_memory(context, entries)?;
    let ring = CompletionSlots::new(memory, entries).map_err(|error| errno(&error))?;
    let handle = verbs.next_handle()?;
    let slots = ring.slots();
    let response = siw::CqResponse {
        common: CreateCqResponse {
            handle,
            entries: slots.capacity(),
        },
        queue: siw::CqQueue {
            id: handle,
            entries: slots.capacity(),
            offset: slots.offset(),
        },
    };
    respond(call, &response)?;
    Ok(CompletionRing::Siw(ring))
}

/// `rxe_resize_cq`: the queue's completions move to a new ring.
pub(super) fn resize(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let request: ResizeCq = read(call)?;
    verbs.completion_queue(context, request.handle)?;
    let ring = verbs.completion_ring(context, request.entries)?;
    let queue = verbs.completion_queue(context, request.handle)?;
    let CompletionRing::Rxe { ring: old, .. } = &mut queue.ring else {
        return Err(Errno::EOPNOTSUPP);
    };
    if old.len() > ring.capacity() {
        return Err(Errno::EINVAL);
    }
    let response = rxe::ResizeResponse {
        common: ResizeCqResponse {
            entries: ring.capacity(),
            reserved: Reserved::ZERO,
        },
        queue: ring.map_info(),
    };
    respond(call, &response)?;
    while let Some(completion) = old.pop() {
        ring.push(&completion);
    }
    *old = ring;
    Ok(())
}

/// Looks for what was posted to queue pairs in ERR as well, which no command reports.
pub(super) fn arm(verbs: &mut Verbs, context: u64, call: &Call<'_>) -> Result<(), Errno> {
    let request: ReqNotifyCq = read(call)?;
    let queue = verbs.completion_queue(context, request.handle)?;
    queue.arm(request.solicited_only != 0);
    verbs.flush_reporting_to(request.handle);
    Ok(())
}

pub(super) fn destroy(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let request: DestroyCq = read(call)?;
    let handle = request.handle;
    verbs.completion_queue(context, handle)?;
    let mut queue_pairs = verbs.queue_pairs.values();
    if queue_pairs.any(|one| one.send_cq == handle || one.receive_cq == handle) {
        return Err(Errno::EBUSY);
    }
    let response = DestroyCqResponse {
        completion_events_reported: 0,
        async_events_reported: 0,
    };
    respond(call, &response)?;
    verbs.completion_queues.remove(&handle);
    verbs.free_closed_channels();
    Ok(())
}
