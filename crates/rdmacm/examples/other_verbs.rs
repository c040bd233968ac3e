//! A queue pair of another verbs library, connected by this one.
//!
//! `verbs` stands for that library; everything above it is what it takes.

use rdmacm::core::{DepthLimits, IdHandle, QpAttr, QpAttrMask, QueuePair, Transport};
use std::io;

#[derive(Debug)]
struct Mine {
    qp: verbs::Qp,
    limits: DepthLimits,
}

impl QueuePair for Mine {
    fn number(&self) -> u32 {
        self.qp.qp_num()
    }

    fn transport(&self) -> Transport {
        Transport::RoCE
    }

    fn depth_limits(&self) -> DepthLimits {
        self.limits // max_qp_rd_atom and max_qp_init_rd_atom of the device
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        let grh = &attr.ah_attr.grh;
        let theirs = verbs::Attr {
            qp_state: attr.qp_state.number(),
            path_mtu: attr.path_mtu.number(),
            dest_qp_num: attr.destination_qp_number,
            rq_psn: attr.rq_psn,
            sq_psn: attr.sq_psn,
            qp_access_flags: attr.access_flags.bits(),
            pkey_index: attr.pkey_index,
            port_num: attr.port_number,
            timeout: attr.timeout,
            retry_cnt: attr.retry_count,
            rnr_retry: attr.rnr_retry,
            min_rnr_timer: attr.min_rnr_timer,
            max_rd_atomic: attr.max_rd_atomic,
            max_dest_rd_atomic: attr.max_destination_rd_atomic,
            dgid: grh.destination_gid,
            sgid_index: grh.source_gid_index,
            flow_label: grh.flow_label,
            hop_limit: grh.hop_limit,
            traffic_class: grh.traffic_class,
            dlid: attr.ah_attr.destination_lid,
            sl: attr.ah_attr.service_level,
        };
        self.qp.modify(&theirs, mask.bits())
    }
}

/// Connects to the node and service that are given.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(node), Some(service)) = (arguments.next(), arguments.next()) else {
        return Err("usage: other_verbs NODE SERVICE".into());
    };
    let limits = DepthLimits {
        responder_resources: 16,
        initiator_depth: 16,
    };
    let queue_pair = |_: &IdHandle| {
        Ok(Mine {
            qp: verbs::Qp::new(),
            limits,
        })
    };
    let connection = rdmacm::Connector::new(node, service).connect_with(queue_pair)?;
    Ok(connection.close(rdmacm::CLOSE_DEADLINE)?)
}

/// Some verbs library. It has no hardware: its queue pairs are numbers.
mod verbs {
    #[derive(Debug)]
    pub(crate) struct Qp {
        number: u32,
    }
    #[expect(dead_code, reason = "hardware would read them")]
    pub(crate) struct Attr {
        pub(crate) qp_state: u32,
        pub(crate) path_mtu: u32,
        pub(crate) dest_qp_num: u32,
        pub(crate) rq_psn: u32,
        pub(crate) sq_psn: u32,
        pub(crate) qp_access_flags: u32,
        pub(crate) pkey_index: u16,
        pub(crate) port_num: u8,
        pub(crate) timeout: u8,
        pub(crate) retry_cnt: u8,
        pub(crate) rnr_retry: u8,
        pub(crate) min_rnr_timer: u8,
        pub(crate) max_rd_atomic: u8,
        pub(crate) max_dest_rd_atomic: u8,
        pub(crate) dgid: [u8; 16],
        pub(crate) sgid_index: u8,
        pub(crate) flow_label: u32,
        pub(crate) hop_limit: u8,
        pub(crate) traffic_class: u8,
        pub(crate) dlid: u16,
        pub(crate) sl: u8,
    }
    impl Qp {
        pub(crate) fn new() -> Self {
            Self { number: 0x7471 }
        }

        pub(crate) fn qp_num(&self) -> u32 {
            self.number
        }
        pub(crate) fn modify(&self, _: &Attr, mask: u32) -> std::io::Result<()> {
            if self.number == 0 || mask == 0 {
                return Err(std::io::ErrorKind::InvalidInput.into());
            }
            Ok(())
        }
    }
}
