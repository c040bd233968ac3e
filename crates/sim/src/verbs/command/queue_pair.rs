//! Commands of queue pairs.

use nix::errno::Errno;
use rdmacm_abi::uverbs::rxe::{self, MapInfo, RecvWqe, SendWqe};
use rdmacm_abi::uverbs::{
    CreateQp, CreateQpResponse, DestroyQp, DestroyQpResponse, ModifyQp, QpDestination, QueryQp,
    QueryQpResponse, Sge, siw,
};
use rdmacm_abi::{QpAttrMask, QpState, QpType, Reserved};
use rdmacm_verbs::Call;
use zerocopy::FromZeros;

use super::query::{Limits, MAX_WR};
use super::{ContextKey, errno, read, respond};
use crate::sim_state::SimState;
use crate::verbs::format::{Format, ONLY_PORT};
use crate::verbs::queue_pair::{QueuePair, Receives, Requester, Responder};
use crate::verbs::ring::Ring;
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
        user_handle: request.user_handle,
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
    receives: Receives,
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
    let receives = if request.is_srq == 0 {
        let size = size_of::<RecvWqe>() + bytes(request.max_recv_sge);
        let ring = rings.ring(request.max_recv_wr, size);
        Some(ring.map_err(|error| errno(&error))?)
    } else {
        None
    };
    let handle = verbs.next_handle()?;
    let count = |bytes: usize| u32::try_from(bytes).unwrap_or(0);
    let caps = CreateQpResponse {
        handle,
        number: handle,
        max_send_wr: sends.capacity(),
        max_recv_wr: receives
            .as_ref()
            .map_or(request.max_recv_wr, Ring::capacity),
        max_send_sge: count(tail / entry),
        max_recv_sge: request.max_recv_sge,
        max_inline_data: count(tail),
        reserved: Reserved::ZERO,
    };
    let response = rxe::QpResponse {
        common: caps,
        queues: rxe::QpQueues {
            receive: receives
                .as_ref()
                .map_or_else(MapInfo::new_zeroed, Ring::map_info),
            send: sends.map_info(),
        },
    };
    respond(call, &response)?;
    Ok(Created {
        sends: WorkQueue::Rxe(sends),
        receives: receives.map_or(Receives::Shared(request.srq), |ring| {
            Receives::Own(WorkQueue::Rxe(ring))
        }),
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
    let own = if request.is_srq == 0 {
        request.max_recv_wr
    } else {
        0
    };
    let receives = Slots::receives(memory, own).map_err(|error| errno(&error))?;
    // Also beside a shared queue, where there is no memory for them.
    let receive_entries = match request.max_recv_wr {
        0 => 0,
        requests => requests.next_power_of_two(),
    };
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
            receive_entries,
            padding: Reserved::ZERO,
            send_offset: sends.offset(),
            receive_offset: receives.offset(),
        },
    };
    respond(call, &response)?;
    Ok(Created {
        sends: WorkQueue::Siw(sends),
        receives: if request.is_srq == 0 {
            Receives::Own(WorkQueue::Siw(receives))
        } else {
            Receives::Shared(request.srq)
        },
        caps,
    })
}

fn check(verbs: &Verbs, context: u64, request: &CreateQp) -> Result<(), Errno> {
    verbs.check_domain(context, request.pd)?;
    if request.qp_type != QpType::RC {
        return Err(Errno::EOPNOTSUPP);
    }
    let is_shared = request.is_srq != 0;
    if is_shared && !verbs.has_shared_receive_queue(context, request.srq) {
        return Err(Errno::EINVAL);
    }
    let has_queues = [request.send_cq, request.recv_cq].iter().all(|handle| {
        let queue = verbs.completion_queues.get(handle);
        queue.is_some_and(|queue| queue.context == context)
    });
    let Limits { sge, inline, .. } = Limits::of(verbs.format);
    // rxe does not look at them if there is a shared queue (`rxe_qp_chk_cap`).
    let receives_fit = is_shared && verbs.format == Format::Rxe
        || request.max_recv_wr <= MAX_WR && request.max_recv_sge <= sge;
    let fits = request.max_send_wr <= MAX_WR
        && receives_fit
        && request.max_send_sge <= sge
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
