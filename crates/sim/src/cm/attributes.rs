//! The attributes of a connection's queue pair.

use nix::errno::Errno;
use rdmacm_abi::{
    AccessFlags, AhAttr, GlobalRoute, PathRecord, QpAttr, QpAttrMask, QpState, QpType, Reserved,
    UDP_QKEY,
};
use rdmacm_core::{Gid, Transport};
use zerocopy::FromZeros;

use super::{IbConnection, IbState};
use crate::device::Device;
use crate::host_state::HostState;
use crate::id::{Attached, CmObject, Id};
use crate::kernel_version::KernelVersion;

/// What every queue pair needs for INIT.
const INIT: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::PKEY_INDEX)
    .union(QpAttrMask::PORT);

/// `rdma_init_qp_attr` on InfiniBand and RoCE.
pub(crate) fn qp_attr(
    host: &HostState,
    number: u32,
    attached: Attached,
    qp_state: QpState,
) -> Result<QpAttr, Errno> {
    let id = host.ids.get(&number).ok_or(Errno::ENOENT)?;
    let mut attr = QpAttr::new_zeroed();
    attr.qp_state = qp_state;
    match &id.cm {
        CmObject::Ib(connection) if !id.is_datagram() => {
            connection_attr(connection, attached, qp_state, host.version, &mut attr)?;
        }
        // That of a listener is in no state of a connection.
        CmObject::Listener if !id.is_datagram() => return Err(Errno::EINVAL),
        _ => initial_attr(host, id, attached, &mut attr)?,
    }
    if qp_state == QpState::RTR {
        attr.rq_psn = id.psn;
    }
    if attr.mask.contains(QpAttrMask::TIMEOUT) {
        attr.timeout = id.options.ack_timeout.unwrap_or(attr.timeout);
    }
    Ok(attr)
}

/// `cma_ib_init_qp_attr`: the same for every state.
fn initial_attr(
    host: &HostState,
    id: &Id,
    attached: Attached,
    attr: &mut QpAttr,
) -> Result<(), Errno> {
    attr.pkey_index = pkey_index(host, id, attached).ok_or(Errno::ENOENT)?;
    attr.mask = INIT;
    attr.port_number = attached.port;
    if id.is_datagram() {
        attr.qkey = if id.qkey == 0 { UDP_QKEY } else { id.qkey };
        attr.mask |= QpAttrMask::QKEY;
    } else {
        attr.mask |= QpAttrMask::ACCESS_FLAGS;
    }
    Ok(())
}

/// The index of the id's partition in the table of its port.
fn pkey_index(host: &HostState, id: &Id, attached: Attached) -> Option<u16> {
    let device = host.devices.get(attached.device)?;
    if device.transport != Transport::InfiniBand {
        return Some(0);
    }
    let (_, port) = device
        .numbered_ports()
        .find(|(number, _)| *number == attached.port)?;
    port.pkey_index(id.pkey)
}

/// `ib_cm_init_qp_attr`.
fn connection_attr(
    connection: &IbConnection,
    attached: Attached,
    qp_state: QpState,
    version: KernelVersion,
    attr: &mut QpAttr,
) -> Result<(), Errno> {
    let is_known = matches!(
        connection.state,
        IbState::ReqReceived | IbState::RepSent | IbState::RepReceived | IbState::Established
    );
    match qp_state {
        QpState::INIT if is_known || connection.state == IbState::ReqSent => {
            attr.mask = INIT | QpAttrMask::ACCESS_FLAGS;
            attr.port_number = attached.port;
            attr.access_flags = access(connection, version);
            Ok(())
        }
        QpState::RTR if is_known => {
            receive_attr(connection, attr);
            Ok(())
        }
        QpState::RTS if is_known => {
            send_attr(connection, attr);
            Ok(())
        }
        _ => Err(Errno::EINVAL),
    }
}

/// What the peer may do with memory here.
fn access(connection: &IbConnection, version: KernelVersion) -> AccessFlags {
    let mut access = AccessFlags::REMOTE_WRITE;
    if connection.responder_resources > 0 {
        access |= AccessFlags::REMOTE_READ | AccessFlags::REMOTE_ATOMIC;
        if version != KernelVersion::Linux6_1 {
            access |= AccessFlags::FLUSH_GLOBAL | AccessFlags::FLUSH_PERSISTENT;
        }
    }
    access
}

/// `cm_init_qp_rtr_attr`.
fn receive_attr(connection: &IbConnection, attr: &mut QpAttr) {
    attr.mask = QpAttrMask::STATE
        | QpAttrMask::AV
        | QpAttrMask::PATH_MTU
        | QpAttrMask::DEST_QPN
        | QpAttrMask::RQ_PSN;
    attr.ah_attr = connection.address_handle;
    attr.path_mtu = connection.path_mtu;
    attr.destination_qp_number = connection.peer_qp_number;
    if [QpType::RC, QpType::XRC_TGT].contains(&connection.qp_type) {
        attr.mask |= QpAttrMask::MAX_DEST_RD_ATOMIC | QpAttrMask::MIN_RNR_TIMER;
        attr.max_destination_rd_atomic = connection.responder_resources;
    }
}

/// `cm_init_qp_rts_attr`.
fn send_attr(connection: &IbConnection, attr: &mut QpAttr) {
    attr.mask = QpAttrMask::STATE | QpAttrMask::SQ_PSN;
    attr.sq_psn = connection.sq_psn;
    if [QpType::RC, QpType::XRC_INI].contains(&connection.qp_type) {
        attr.mask |= QpAttrMask::RETRY_CNT | QpAttrMask::RNR_RETRY | QpAttrMask::MAX_QP_RD_ATOMIC;
        attr.retry_count = connection.retry_count;
        attr.rnr_retry = connection.rnr_retry_count;
        attr.max_rd_atomic = connection.initiator_depth;
    }
    if [QpType::RC, QpType::XRC_INI, QpType::XRC_TGT].contains(&connection.qp_type) {
        attr.mask |= QpAttrMask::TIMEOUT;
        attr.timeout = connection.ack_timeout;
    }
}

/// How packets on a path find the peer (`ib_init_ah_attr_from_path`).
pub(super) fn address_handle(device: &Device, port: u8, path: &PathRecord) -> AhAttr {
    let is_ethernet = device.transport != Transport::InfiniBand;
    let is_global = is_ethernet || path.hop_limit() > 1;
    let mut grh = GlobalRoute::default();
    if is_global {
        grh.destination_gid = path.destination_gid;
        grh.flow_label = path.flow_label();
        grh.source_gid_index = device.gid_index(Gid(path.source_gid));
        grh.hop_limit = path.hop_limit();
        grh.traffic_class = path.traffic_class;
    }
    AhAttr {
        grh,
        destination_lid: if is_ethernet {
            0
        } else {
            path.destination_lid.get()
        },
        service_level: path.service_level(),
        source_path_bits: 0,
        static_rate: path.rate(),
        is_global: is_global.into(),
        port_number: port,
        reserved: Reserved::ZERO,
    }
}
