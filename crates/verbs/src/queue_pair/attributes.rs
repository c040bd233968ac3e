//! Conversions between a queue pair's attributes and its commands.

use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::{ModifyQp, QueryQpResponse};
use rdmacm_core::{PathMtu, QpAttr, QpAttrMask, QpState};
use zerocopy::FromZeros;

/// The request that sets the attributes in `mask`. Other attributes are clamped to the size
/// of their fields: the kernel ignores them.
pub(super) fn to_modify(
    handle: u32,
    attr: &QpAttr,
    mask: QpAttrMask,
) -> Result<ModifyQp, &'static str> {
    let byte = |value: u32, bit: QpAttrMask, reason| match u8::try_from(value) {
        Ok(byte) => Ok(byte),
        Err(_) if mask.contains(bit) => Err(reason),
        Err(_) => Ok(0),
    };
    let state = "there is no such state";
    Ok(ModifyQp {
        destination: attr.ah_attr.into(),
        alternate_destination: attr.alternate_ah_attr.into(),
        handle,
        mask,
        qkey: attr.qkey,
        rq_psn: attr.rq_psn,
        sq_psn: attr.sq_psn,
        destination_qp_number: attr.destination_qp_number,
        access_flags: attr.access_flags,
        pkey_index: attr.pkey_index,
        alternate_pkey_index: attr.alternate_pkey_index,
        qp_state: byte(attr.qp_state.number(), QpAttrMask::STATE, state)?,
        current_qp_state: byte(attr.current_qp_state.number(), QpAttrMask::CUR_STATE, state)?,
        path_mtu: byte(
            attr.path_mtu.number(),
            QpAttrMask::PATH_MTU,
            "there is no such MTU",
        )?,
        path_migration_state: byte(
            attr.path_migration_state,
            QpAttrMask::PATH_MIG_STATE,
            "there is no such state of path migration",
        )?,
        en_sqd_async_notify: attr.en_sqd_async_notify,
        max_rd_atomic: attr.max_rd_atomic,
        max_destination_rd_atomic: attr.max_destination_rd_atomic,
        min_rnr_timer: attr.min_rnr_timer,
        port_number: attr.port_number,
        timeout: attr.timeout,
        retry_count: attr.retry_count,
        rnr_retry: attr.rnr_retry,
        alternate_port_number: attr.alternate_port_number,
        alternate_timeout: attr.alternate_timeout,
        reserved: Reserved::ZERO,
    })
}

/// The attributes that a driver reports; the others are zero.
///
/// A driver that reports few attributes leaves the rest of its answer uninitialised
/// (`siw_query_qp`, `ib_uverbs_query_qp`). So this uses only attributes that the driver
/// reports, and the state only if it is valid: siw of Linux 6.1 does not report it.
pub(crate) fn from_query(queryable: QpAttrMask, answer: QueryQpResponse) -> QpAttr {
    let (answer, mask) = if queryable.contains(QpAttrMask::DEST_QPN) {
        (answer, queryable)
    } else if is_state_of_siw(answer.qp_state) {
        (attributes_of_siw(&answer), queryable)
    } else {
        let answer = QueryQpResponse {
            qp_state: 0,
            ..attributes_of_siw(&answer)
        };
        (answer, queryable - QpAttrMask::STATE)
    };
    QpAttr {
        mask,
        qp_state: QpState::new(answer.qp_state.into()),
        current_qp_state: QpState::new(answer.current_qp_state.into()),
        path_mtu: PathMtu::new(answer.path_mtu.into()),
        path_migration_state: answer.path_migration_state.into(),
        qkey: answer.qkey,
        rq_psn: answer.rq_psn,
        sq_psn: answer.sq_psn,
        destination_qp_number: answer.destination_qp_number,
        access_flags: answer.access_flags,
        ah_attr: answer.destination.into(),
        alternate_ah_attr: answer.alternate_destination.into(),
        max_send_wr: answer.max_send_wr,
        max_recv_wr: answer.max_recv_wr,
        max_send_sge: answer.max_send_sge,
        max_recv_sge: answer.max_recv_sge,
        max_inline_data: answer.max_inline_data,
        pkey_index: answer.pkey_index,
        alternate_pkey_index: answer.alternate_pkey_index,
        // Not in the answer.
        en_sqd_async_notify: 0,
        sq_draining: answer.sq_draining,
        max_rd_atomic: answer.max_rd_atomic,
        max_destination_rd_atomic: answer.max_destination_rd_atomic,
        min_rnr_timer: answer.min_rnr_timer,
        port_number: answer.port_number,
        timeout: answer.timeout,
        retry_count: answer.retry_count,
        rnr_retry: answer.rnr_retry,
        alternate_port_number: answer.alternate_port_number,
        alternate_timeout: answer.alternate_timeout,
        reserved: Reserved::ZERO,
    }
}

/// The fields that siw sets.
fn attributes_of_siw(answer: &QueryQpResponse) -> QueryQpResponse {
    QueryQpResponse {
        qp_state: answer.qp_state,
        path_mtu: answer.path_mtu,
        access_flags: answer.access_flags,
        max_rd_atomic: answer.max_rd_atomic,
        max_destination_rd_atomic: answer.max_destination_rd_atomic,
        max_send_wr: answer.max_send_wr,
        max_recv_wr: answer.max_recv_wr,
        max_send_sge: answer.max_send_sge,
        max_recv_sge: answer.max_recv_sge,
        max_inline_data: answer.max_inline_data,
        ..QueryQpResponse::new_zeroed()
    }
}

/// Whether siw may have reported this state: its states begin with INIT, and siw of Linux 6.1
/// reports none.
fn is_state_of_siw(state: u8) -> bool {
    (QpState::INIT..=QpState::ERR).contains(&QpState::new(state.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Provider, Rxe, Siw};
    use rdmacm_core::AccessFlags;
    use zerocopy::{FromBytes, IntoBytes};

    /// Bytes that differ from their neighbours.
    fn pattern<const N: usize>() -> [u8; N] {
        std::array::from_fn(|index| u8::try_from(index % 251 + 1).unwrap())
    }

    fn attr() -> QpAttr {
        QpAttr {
            qp_state: QpState::RTR,
            current_qp_state: QpState::INIT,
            path_mtu: PathMtu::B1024,
            path_migration_state: 1,
            ..QpAttr::read_from_bytes(&pattern::<144>()).unwrap()
        }
    }

    #[test]
    fn a_change_has_every_attribute_under_its_mask() {
        let (attr, mask) = (attr(), QpAttrMask::STATE | QpAttrMask::AV);
        let request = to_modify(9, &attr, mask).unwrap();
        assert_eq!((request.handle, request.mask), (9, mask));
        assert_eq!((request.qp_state, request.current_qp_state), (2, 1));
        assert_eq!((request.path_mtu, request.path_migration_state), (3, 1));
        assert_eq!(request.destination, attr.ah_attr.into());
        assert_eq!(request.alternate_destination, attr.alternate_ah_attr.into());
        // The 32-bit fields from the queue key to the access flags, and the two indices, are
        // adjacent in both.
        assert_eq!(request.as_bytes()[72..92], attr.as_bytes()[20..40]);
        assert_eq!(request.as_bytes()[92..96], attr.as_bytes()[124..128]);
        assert_eq!(request.en_sqd_async_notify, attr.en_sqd_async_notify);
        // From the depths to the alternate timeout.
        assert_eq!(request.as_bytes()[101..110], attr.as_bytes()[130..139]);
        assert_eq!(request.as_bytes()[110..], [0; 2]);
    }

    #[test]
    fn what_a_byte_cannot_say_is_refused_if_it_counts() {
        let attr = QpAttr {
            qp_state: QpState::new(0x102),
            path_mtu: PathMtu::new(4096),
            ..attr()
        };
        let refused = |mask| to_modify(0, &attr, mask).unwrap_err();
        assert_eq!(refused(QpAttrMask::STATE), "there is no such state");
        assert_eq!(refused(QpAttrMask::PATH_MTU), "there is no such MTU");
        let request = to_modify(0, &attr, QpAttrMask::PORT).unwrap();
        assert_eq!((request.qp_state, request.path_mtu), (0, 0));
    }

    #[test]
    fn rxe_reports_all_attributes() {
        let answer = QueryQpResponse::read_from_bytes(&pattern::<128>()).unwrap();
        let attr = from_query(Rxe.queryable_attributes(), answer);
        assert_eq!(attr.ah_attr, answer.destination.into());
        assert_eq!(attr.alternate_ah_attr, answer.alternate_destination.into());
        // Sizes, then the 32-bit fields from the queue key to the access flags.
        assert_eq!(attr.as_bytes()[104..124], answer.as_bytes()[64..84]);
        assert_eq!(attr.as_bytes()[20..40], answer.as_bytes()[84..104]);
        assert_eq!(attr.as_bytes()[124..128], answer.as_bytes()[104..108]);
        // From draining to the alternate timeout.
        assert_eq!(attr.as_bytes()[129..139], answer.as_bytes()[112..122]);
        assert_eq!(attr.qp_state.number(), u32::from(answer.qp_state));
        assert_eq!(attr.path_mtu.number(), u32::from(answer.path_mtu));
    }

    #[test]
    fn what_siw_leaves_to_chance_is_zero() {
        let mut answer = QueryQpResponse::read_from_bytes(&[0xa5; 128]).unwrap();
        let attr = from_query(Siw.queryable_attributes(), answer);
        let expected = QpAttr {
            mask: Siw.queryable_attributes() - QpAttrMask::STATE,
            path_mtu: PathMtu::new(0xa5),
            access_flags: AccessFlags::from_bits_retain(0xa5a5_a5a5),
            max_send_wr: 0xa5a5_a5a5,
            max_recv_wr: 0xa5a5_a5a5,
            max_send_sge: 0xa5a5_a5a5,
            max_recv_sge: 0xa5a5_a5a5,
            max_inline_data: 0xa5a5_a5a5,
            max_rd_atomic: 0xa5,
            max_destination_rd_atomic: 0xa5,
            ..QpAttr::new_zeroed()
        };
        assert_eq!(attr, expected);
        answer.qp_state = 3;
        let expected = QpAttr {
            mask: Siw.queryable_attributes(),
            qp_state: QpState::RTS,
            ..expected
        };
        assert_eq!(from_query(Siw.queryable_attributes(), answer), expected);
        answer.qp_state = 0;
        let attr = from_query(Siw.queryable_attributes(), answer);
        assert!(!attr.mask.contains(QpAttrMask::STATE));
    }
}
