//! What a device and its port are like.

use nix::errno::Errno;
use rdmacm_abi::PathMtu;
use rdmacm_abi::uverbs::{QueryDeviceResponse, QueryPort, QueryPortResponse, siw};
use rdmacm_verbs::Call;
use zerocopy::FromZeros;

use super::{ContextKey, read, respond};
use crate::device::Device;
use crate::sim_state::SimState;
use crate::verbs::format::{Format, ONLY_PORT};

/// The limits of rxe (`rxe_param.h`), as far as memory is no limit before.
pub(super) const MAX_CQE: u32 = (1 << 15) - 1;
pub(super) const MAX_WR: u32 = 1 << 14;
const MAX_OBJECTS: u32 = 1 << 16;
const MAX_RD_ATOMIC: u32 = 128;
const PAGE_SIZES: u64 = 0xffff_f000;

/// What a request may have.
pub(super) struct Limits {
    /// Scatter/gather entries.
    pub(super) sge: u32,
    /// Those of a read.
    pub(super) sge_of_read: u32,
    /// Those of a request of a shared receive queue.
    pub(super) sge_of_shared_receive: u32,
    /// Bytes of inline data.
    pub(super) inline: u32,
}

impl Limits {
    pub(super) fn of(format: Format) -> Self {
        let limit = |limit: usize| u32::try_from(limit).unwrap_or(0);
        match format {
            Format::Rxe => Self {
                sge: 32,
                sge_of_read: 32,
                sge_of_shared_receive: 27,
                inline: 512,
            },
            Format::Siw => Self {
                sge: limit(siw::MAX_SGE),
                sge_of_read: 1,
                sge_of_shared_receive: limit(siw::MAX_SGE),
                inline: limit(siw::MAX_INLINE),
            },
        }
    }
}

fn find(state: &SimState, context: ContextKey) -> Result<&Device, Errno> {
    let host = state.hosts.get(context.host);
    host.and_then(|host| host.devices.get(context.device))
        .ok_or(Errno::EIO)
}

pub(super) fn device(
    state: &SimState,
    context: ContextKey,
    call: &mut Call<'_>,
) -> Result<(), Errno> {
    let device = find(state, context)?;
    let limits = Limits::of(device.verbs.format);
    let response = QueryDeviceResponse {
        node_guid: device.guid.0.into(),
        system_image_guid: device.guid.0.into(),
        max_mr_size: u64::MAX,
        page_size_cap: PAGE_SIZES,
        max_qp: MAX_OBJECTS,
        max_qp_wr: MAX_WR,
        max_sge: limits.sge,
        max_sge_rd: limits.sge_of_read,
        max_cq: MAX_OBJECTS,
        max_cqe: MAX_CQE,
        max_mr: MAX_OBJECTS,
        max_pd: MAX_OBJECTS,
        max_srq: MAX_OBJECTS,
        max_srq_wr: MAX_WR,
        max_srq_sge: limits.sge_of_shared_receive,
        max_qp_rd_atom: MAX_RD_ATOMIC,
        max_res_rd_atom: MAX_RD_ATOMIC,
        max_qp_init_rd_atom: MAX_RD_ATOMIC,
        // Atomics are so to the device alone; siw has none.
        atomic_cap: (device.verbs.format == Format::Rxe).into(),
        max_ah: 0,
        max_pkeys: 1,
        ack_delay: device.ack_delay(),
        port_count: ONLY_PORT,
        ..QueryDeviceResponse::new_zeroed()
    };
    respond(call, &response)
}

pub(super) fn port(
    state: &SimState,
    context: ContextKey,
    call: &mut Call<'_>,
) -> Result<(), Errno> {
    /// `ib_port_state` and `ib_port_phys_state`.
    const DOWN: (u8, u8) = (1, 3);
    const ACTIVE: (u8, u8) = (4, 5);
    const ETHERNET: u8 = 2;
    const MAX_MESSAGE: u32 = 1 << 30;
    let request: QueryPort = read(call)?;
    let device = find(state, context)?;
    if request.port_number != ONLY_PORT {
        return Err(Errno::EINVAL);
    }
    let (state, physical_state) = if device.is_active() { ACTIVE } else { DOWN };
    let mtu = |mtu: PathMtu| u8::try_from(mtu.number()).unwrap_or(0);
    let response = QueryPortResponse {
        max_message_size: MAX_MESSAGE,
        gid_table_len: device.gid_count(),
        pkey_table_len: 1,
        state,
        physical_state,
        max_mtu: mtu(PathMtu::B4096),
        active_mtu: device.path_mtu().map_or(0, mtu),
        active_width: 1,
        active_speed: 1,
        link_layer: ETHERNET,
        ..QueryPortResponse::new_zeroed()
    };
    respond(call, &response)
}
