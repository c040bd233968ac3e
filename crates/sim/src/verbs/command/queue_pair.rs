//! Commands of queue pairs.

use nix::errno::Errno;
use rdmacm_abi::uverbs::rxe::{self, RecvWqe, SendWqe};
use rdmacm_abi::uverbs::{
    CreateQp, CreateQpResponse, DestroyQp, DestroyQpResponse, ModifyQp, QpDestination, QueryQp,
    QueryQpResponse, Sge, siw,
};
use rdmacm_abi::{QpAttrMask, QpState, QpType, Reserved};
use rdmacm_verbs::Call;
use zerocopy::FromZeros;

use super::query::{Limits, MAX_QP_WR};
use super::{ContextKey, errno, read, respond};
use crate::sim_state::SimState;
use crate::verbs::format::{Format, ONLY_PORT};
use crate::verbs::queue_pair::{QueuePair, Requester, Responder};
use crate::verbs::slots::Slots;
use crate::verbs::work_queue::WorkQueue;
use crate::verbs::{Verbs, transition};

impl Verbs {
    fn own_queue_pair(&mut self, context: u64, handle: u32) -> Result<&mut QueuePair, Errno> {
        let queue_pair = self.queue_pairs.get_mut(&handle);
        let queue_pair = queue_pair.filter(|one| one.context == context);
        queue_pair.ok_or(Errno::EINVAL)
    }
}

pub(super) fn create(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let request: CreateQp = read(call)?;
    check(verbs, context, &request)?;
    let created = match verbs.format {
        Format::Rxe => create_rxe(verbs, context, &request, call)?,
        Format::Siw => create_siw(verbs, context, &request, call)?,
    };
    let queue_pair = QueuePair {
        format: verbs.format,
        context,
        domain: request.pd,
        qp_type: request.qp_type,
        signal_all: request.signal_all != 0,
        send_cq: request.send_cq,
        receive_cq: request.recv_cq,
        sends: created.sends,
        receives: created.receives,
        caps: created.caps,
        state: match verbs.format {
            Format::Rxe => QpState::RESET,
            Format::Siw => QpState::INIT,
        },
        attr: ModifyQp::new_zeroed(),
        source: None,
        requester: Requester::default(),
        responder: Responder::default(),
    };
    verbs.queue_pairs.insert(created.caps.handle, queue_pair);
    Ok(())
}

/// The queues of a new queue pair, as its response describes them.
struct Created {
    sends: WorkQueue,
    receives: WorkQueue,
    caps: CreateQpResponse,
}

/// `rxe_create_qp`.
fn create_rxe(
    verbs: &mut Verbs,
    context: u64,
    request: &CreateQp,
    call: &mut Call<'_>,
) -> Result<Created, Errno> {
    let entry = size_of::<Sge>();
    let bytes = |sges: u32| usize::try_from(sges).unwrap_or(0) * entry;
    // What a request has room for holds scatter/gather entries or inline data.
    let inline = usize::try_from(request.max_inline_data).unwrap_or(0);
    let tail = bytes(request.max_send_sge).max(inline.next_multiple_of(entry));
    let rings = &mut verbs.context(context)?.rings;
    let sends = rings.ring(request.max_send_wr, size_of::<SendWqe>() + tail);
    let sends = sends.map_err(|error| errno(&error))?;
    let receive_size = size_of::<RecvWqe>() + bytes(request.max_recv_sge);
    let receives = rings
        .ring(request.max_recv_wr, receive_size)
        .map_err(|error| errno(&error))?;
    let handle = verbs.next_handle()?;
    let count = |bytes: usize| u32::try_from(bytes).unwrap_or(0);
    let caps = CreateQpResponse {
        handle,
        number: handle,
        max_send_wr: sends.capacity(),
        max_recv_wr: receives.capacity(),
        max_send_sge: count(tail / entry),
        max_recv_sge: request.max_recv_sge,
        max_inline_data: count(tail),
        reserved: Reserved::ZERO,
    };
    let response = rxe::QpResponse {
        common: caps,
        queues: rxe::QpQueues {
            receive: receives.map_info(),
            send: sends.map_info(),
        },
    };
    respond(call, &response)?;
    Ok(Created {
        sends: WorkQueue::Rxe(sends),
        receives: WorkQueue::Rxe(receives),
        caps,
    })
}

/// `siw_create_qp`.
fn create_siw(
    verbs: &mut Verbs,
    context: u64,
    request: &CreateQp,
    call: &mut Call<'_>,
) -> Result<Created, Errno> {
    if request.max_send_wr == 0 {
        return Err(Errno::EINVAL);
    }
    let memory = &mut verbs.context(context)?.rings;
    let sends = Slots::sends(memory, request.max_send_wr).map_err(|error| errno(&error))?;
    let receives = Slots::receives(memory, request.max_recv_wr).map_err(|error| errno(&error))?;
    let handle = verbs.next_siw_number()?;
    let caps = CreateQpResponse {
        handle,
        number: handle,
        max_send_wr: request.max_send_wr,
        max_recv_wr: request.max_recv_wr,
        max_send_sge: request.max_send_sge,
        max_recv_sge: request.max_recv_sge,
        max_inline_data: request.max_inline_data,
        reserved: Reserved::ZERO,
    };
    let response = siw::QpResponse {
        common: caps,
        queues: siw::QpQueues {
            id: handle,
            send_entries: sends.capacity(),
            receive_entries: receives.capacity(),
            padding: Reserved::ZERO,
            send_offset: sends.offset(),
            receive_offset: receives.offset(),
        },
    };
    respond(call, &response)?;
    Ok(Created {
        sends: WorkQueue::Siw(sends),
        receives: WorkQueue::Siw(receives),
        caps,
    })
}

fn check(verbs: &Verbs, context: u64, request: &CreateQp) -> Result<(), Errno> {
    verbs.check_domain(context, request.pd)?;
    if request.qp_type != QpType::RC || request.is_srq != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let has_queues = [request.send_cq, request.recv_cq].iter().all(|handle| {
        let queue = verbs.completion_queues.get(handle);
        queue.is_some_and(|queue| queue.context == context)
    });
    let Limits { sge, inline, .. } = Limits::of(verbs.format);
    let fits = request.max_send_wr <= MAX_QP_WR
        && request.max_recv_wr <= MAX_QP_WR
        && request.max_send_sge <= sge
        && request.max_recv_sge <= sge
        && request.max_inline_data <= inline;
    (has_queues && fits).then_some(()).ok_or(Errno::EINVAL)
}

pub(super) fn modify(
    state: &mut SimState,
    context: ContextKey,
    call: &Call<'_>,
) -> Result<(), Errno> {
    let request: ModifyQp = read(call)?;
    if request.mask.bits() & !STANDARD != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let key = context.queue_pair(request.handle);
    let verbs = state
        .verbs(context.host, context.device)
        .ok_or(Errno::EIO)?;
    verbs.own_queue_pair(context.serial, request.handle)?;
    if !has_valid_ports(&request) {
        return Err(Errno::EINVAL);
    }
    transition::modify(state, key, &request)
}

/// `IB_QP_ATTR_STANDARD_BITS`, the attributes of `MODIFY_QP`.
const STANDARD: u32 = (1 << 21) - 1;

/// Whether a request names no port that the device does not have (`modify_qp` of the kernel's
/// `uverbs_cmd.c`). The device has one, so that every path leads through the queue pair's.
fn has_valid_ports(request: &ModifyQp) -> bool {
    let ports = [
        (QpAttrMask::PORT, request.port_number),
        (QpAttrMask::AV, request.destination.port_number),
        (QpAttrMask::ALT_PATH, request.alternate_port_number),
        (
            QpAttrMask::ALT_PATH,
            request.alternate_destination.port_number,
        ),
    ];
    let mut named = ports
        .into_iter()
        .filter(|(attribute, _)| request.mask.contains(*attribute));
    named.all(|(_, port)| port == ONLY_PORT)
}

pub(super) fn query(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let request: QueryQp = read(call)?;
    let queue_pair = verbs.own_queue_pair(context, request.handle)?;
    let (attr, caps) = (&queue_pair.attr, &queue_pair.caps);
    let state = u8::try_from(queue_pair.state.number()).unwrap_or(0);
    let response = QueryQpResponse {
        destination: attr.destination,
        alternate_destination: QpDestination::default(),
        max_send_wr: caps.max_send_wr,
        max_recv_wr: caps.max_recv_wr,
        max_send_sge: caps.max_send_sge,
        max_recv_sge: caps.max_recv_sge,
        max_inline_data: caps.max_inline_data,
        qkey: attr.qkey,
        rq_psn: attr.rq_psn,
        sq_psn: attr.sq_psn,
        destination_qp_number: attr.destination_qp_number,
        access_flags: attr.access_flags,
        pkey_index: attr.pkey_index,
        qp_state: state,
        current_qp_state: state,
        path_mtu: attr.path_mtu,
        max_rd_atomic: attr.max_rd_atomic,
        max_destination_rd_atomic: attr.max_destination_rd_atomic,
        min_rnr_timer: attr.min_rnr_timer,
        port_number: attr.port_number,
        timeout: attr.timeout,
        retry_count: attr.retry_count,
        rnr_retry: attr.rnr_retry,
        signal_all: queue_pair.signal_all.into(),
        ..QueryQpResponse::new_zeroed()
    };
    respond(call, &response)
}

/// An iWARP connection ends with its queue pair.
pub(super) fn destroy(
    state: &mut SimState,
    context: ContextKey,
    call: &mut Call<'_>,
) -> Result<(), Errno> {
    let request: DestroyQp = read(call)?;
    let verbs = state
        .verbs(context.host, context.device)
        .ok_or(Errno::EIO)?;
    let queue_pair = verbs.own_queue_pair(context.serial, request.handle)?;
    let is_siw = queue_pair.format == Format::Siw;
    respond(call, &DestroyQpResponse { events_reported: 0 })?;
    if is_siw {
        transition::fail(state, context.queue_pair(request.handle));
    }
    if let Some(verbs) = state.verbs(context.host, context.device) {
        verbs.queue_pairs.remove(&request.handle);
    }
    Ok(())
}
