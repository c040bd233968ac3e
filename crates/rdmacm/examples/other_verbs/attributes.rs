//! The attributes of a queue pair as plain numbers, every one that a mask may name:
//! the fields of libibverbs' `struct ibv_qp_attr`.

use rdmacm::core::QpAttr;

/// `ibv_qp_attr`.
#[expect(
    clippy::struct_field_names,
    reason = "the fields have libibverbs' names"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attr {
    pub(crate) qp_state: u32,
    pub(crate) cur_qp_state: u32,
    pub(crate) path_mtu: u32,
    pub(crate) path_mig_state: u32,
    pub(crate) qkey: u32,
    pub(crate) rq_psn: u32,
    pub(crate) sq_psn: u32,
    pub(crate) dest_qp_num: u32,
    pub(crate) qp_access_flags: u32,
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
    pub(crate) max_inline_data: u32,
    pub(crate) ah_attr: AhAttr,
    pub(crate) alt_ah_attr: AhAttr,
    pub(crate) pkey_index: u16,
    pub(crate) alt_pkey_index: u16,
    pub(crate) en_sqd_async_notify: u8,
    pub(crate) max_rd_atomic: u8,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) port_num: u8,
    pub(crate) timeout: u8,
    pub(crate) retry_cnt: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) alt_port_num: u8,
    pub(crate) alt_timeout: u8,
}

/// `ibv_ah_attr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AhAttr {
    pub(crate) grh: GlobalRoute,
    pub(crate) dlid: u16,
    pub(crate) sl: u8,
    pub(crate) src_path_bits: u8,
    pub(crate) static_rate: u8,
    pub(crate) is_global: u8,
    pub(crate) port_num: u8,
}

/// `ibv_global_route`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GlobalRoute {
    pub(crate) dgid: [u8; 16],
    pub(crate) flow_label: u32,
    pub(crate) sgid_index: u8,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
}

impl From<&QpAttr> for Attr {
    fn from(attr: &QpAttr) -> Self {
        Self {
            qp_state: attr.qp_state.number(),
            cur_qp_state: attr.current_qp_state.number(),
            path_mtu: attr.path_mtu.number(),
            path_mig_state: attr.path_migration_state,
            qkey: attr.qkey,
            rq_psn: attr.rq_psn,
            sq_psn: attr.sq_psn,
            dest_qp_num: attr.destination_qp_number,
            qp_access_flags: attr.access_flags.bits(),
            max_send_wr: attr.max_send_wr,
            max_recv_wr: attr.max_recv_wr,
            max_send_sge: attr.max_send_sge,
            max_recv_sge: attr.max_recv_sge,
            max_inline_data: attr.max_inline_data,
            ah_attr: AhAttr::from(&attr.ah_attr),
            alt_ah_attr: AhAttr::from(&attr.alternate_ah_attr),
            pkey_index: attr.pkey_index,
            alt_pkey_index: attr.alternate_pkey_index,
            en_sqd_async_notify: attr.en_sqd_async_notify,
            max_rd_atomic: attr.max_rd_atomic,
            max_dest_rd_atomic: attr.max_destination_rd_atomic,
            min_rnr_timer: attr.min_rnr_timer,
            port_num: attr.port_number,
            timeout: attr.timeout,
            retry_cnt: attr.retry_count,
            rnr_retry: attr.rnr_retry,
            alt_port_num: attr.alternate_port_number,
            alt_timeout: attr.alternate_timeout,
        }
    }
}

impl From<&rdmacm::core::AhAttr> for AhAttr {
    /// Without `is_global` RoCE has no destination, and without the port rxe no device.
    fn from(attr: &rdmacm::core::AhAttr) -> Self {
        Self {
            grh: GlobalRoute {
                dgid: attr.grh.destination_gid,
                flow_label: attr.grh.flow_label,
                sgid_index: attr.grh.source_gid_index,
                hop_limit: attr.grh.hop_limit,
                traffic_class: attr.grh.traffic_class,
            },
            dlid: attr.destination_lid,
            sl: attr.service_level,
            src_path_bits: attr.source_path_bits,
            static_rate: attr.static_rate,
            is_global: attr.is_global,
            port_num: attr.port_number,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use rdmacm::core::{AhAttr as TheirAhAttr, GlobalRoute as TheirRoute, QpAttrMask};
    use zerocopy::{FromBytes, FromZeros, IntoBytes};

    use super::{Attr, QpAttr};

    /// Bytes that no state transition sets: the mask itself, an answer of the driver's, and padding.
    fn is_no_attribute(offset: usize) -> bool {
        let ah_padding = offset_of!(TheirAhAttr, reserved);
        let grh_padding = offset_of!(TheirRoute, reserved);
        let address_vectors = [
            offset_of!(QpAttr, ah_attr),
            offset_of!(QpAttr, alternate_ah_attr),
        ];
        offset < size_of::<QpAttrMask>()
            || offset == offset_of!(QpAttr, sq_draining)
            || offset >= offset_of!(QpAttr, reserved)
            || address_vectors.contains(&offset.wrapping_sub(ah_padding))
            || address_vectors.contains(&offset.wrapping_sub(grh_padding))
    }

    #[test]
    fn every_attribute_gets_through() {
        let nothing = QpAttr::new_zeroed();
        for offset in (0..size_of::<QpAttr>()).filter(|offset| !is_no_attribute(*offset)) {
            let mut bytes = [0; size_of::<QpAttr>()];
            nothing.write_to(&mut bytes).unwrap();
            bytes[offset] = 1;
            let attr = QpAttr::read_from_bytes(&bytes).unwrap();
            assert_ne!(Attr::from(&attr), Attr::from(&nothing), "byte {offset}");
        }
    }
}
