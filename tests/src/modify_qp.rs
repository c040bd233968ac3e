//! Moves rxe queue pairs between states without the connection manager.

use rdmacm_core::{AccessFlags, AhAttr, PathMtu, QpAttr, QpAttrMask, QpState, QpType};
use rdmacm_verbs::{QpCaps, QueuePair};
use zerocopy::FromZeros;

use crate::site::Site;

/// The attributes of the move of a connected queue pair to INIT.
pub const INIT: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::PKEY_INDEX)
    .union(QpAttrMask::PORT)
    .union(QpAttrMask::ACCESS_FLAGS);
/// The attributes of the move to RTR.
pub const RTR: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::AV)
    .union(QpAttrMask::PATH_MTU)
    .union(QpAttrMask::DEST_QPN)
    .union(QpAttrMask::RQ_PSN)
    .union(QpAttrMask::MAX_DEST_RD_ATOMIC)
    .union(QpAttrMask::MIN_RNR_TIMER);
/// The attributes of the move to RTS.
pub const RTS: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::TIMEOUT)
    .union(QpAttrMask::RETRY_CNT)
    .union(QpAttrMask::RNR_RETRY)
    .union(QpAttrMask::SQ_PSN)
    .union(QpAttrMask::MAX_QP_RD_ATOMIC);

/// The attributes that unacknowledged types do not have.
pub const ACKNOWLEDGED: QpAttrMask = QpAttrMask::MAX_DEST_RD_ATOMIC
    .union(QpAttrMask::MIN_RNR_TIMER)
    .union(QpAttrMask::TIMEOUT)
    .union(QpAttrMask::RETRY_CNT)
    .union(QpAttrMask::RNR_RETRY)
    .union(QpAttrMask::MAX_QP_RD_ATOMIC);

/// The queue key of datagram queue pairs.
pub const QKEY: u32 = rdmacm_core::RDMA_UDP_QKEY;

/// Attributes for any state, with the queue pair of this number as the peer. Retries
/// end soon if the peer does not answer or receive.
#[must_use]
pub fn attributes(site: &Site, peer: u32, state: QpState) -> QpAttr {
    let mut attr = QpAttr::new_zeroed();
    attr.qp_state = state;
    attr.port_number = 1;
    attr.access_flags =
        AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_ATOMIC;
    attr.path_mtu = PathMtu::B1024;
    attr.destination_qp_number = peer;
    (attr.rq_psn, attr.sq_psn) = (0x1234, 0x1234);
    (attr.max_rd_atomic, attr.max_destination_rd_atomic) = (3, 5);
    (attr.timeout, attr.retry_count, attr.rnr_retry) = (16, 6, 3);
    attr.min_rnr_timer = 12;
    attr.qkey = QKEY;
    attr.ah_attr = site.path_to_itself();
    attr
}

impl Site {
    /// The path to the device itself.
    #[must_use]
    pub fn path_to_itself(&self) -> AhAttr {
        let gid = self.v4.to_ipv6_mapped().octets();
        let gids = self.verbs().gids(1).unwrap();
        let entry = gids.iter().find(|entry| entry.gid.0 == gid).unwrap();
        let mut path = AhAttr::new_zeroed();
        path.port_number = 1;
        path.is_global = 1;
        path.grh.destination_gid = gid;
        path.grh.source_gid_index = entry.index.try_into().unwrap();
        path.grh.hop_limit = 64;
        path
    }

    /// Moves a queue pair to RTS, with the queue pair of this number as its peer.
    pub fn move_to_rts(&self, queue_pair: &QueuePair, peer: u32) {
        let datagrams = QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT;
        let steps = match queue_pair.qp_type() {
            QpType::UD => [
                datagrams | QpAttrMask::QKEY,
                QpAttrMask::STATE,
                QpAttrMask::STATE | QpAttrMask::SQ_PSN,
            ],
            QpType::UC => [INIT, RTR - ACKNOWLEDGED, RTS - ACKNOWLEDGED],
            _ => [INIT, RTR, RTS],
        };
        let states = [QpState::INIT, QpState::RTR, QpState::RTS];
        // Computed once, because it searches the device's GID table.
        let mut attr = attributes(self, peer, QpState::INIT);
        for (state, mask) in states.into_iter().zip(steps) {
            attr.qp_state = state;
            queue_pair.modify(&attr, mask).unwrap();
        }
    }

    /// Two queue pairs of a type, in RTS, each with the other as its peer.
    #[must_use]
    pub fn pair_in_rts(&self, qp_type: QpType, caps: QpCaps) -> [QueuePair; 2] {
        let options = QueuePair::options(qp_type)
            .caps(caps)
            .with_completion_channels();
        let [one, other] = [(); 2].map(|()| options.create(&self.verbs()).unwrap());
        self.move_to_rts(&one, other.number());
        self.move_to_rts(&other, one.number());
        [one, other]
    }
}
