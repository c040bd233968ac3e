//! A queue pair of another verbs library, connected by this one.
//!
//! The module `verbs` stands for that library. This file and the module `attributes` are all
//! that is needed to connect its queue pairs.

use rdmacm::core::{DepthLimits, IdHandle, QpAttr, QpAttrMask, QueuePair, Transport};
use std::io;

#[path = "other_verbs/attributes.rs"]
mod attributes;
#[path = "other_verbs/verbs.rs"]
mod verbs;

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
        self.qp.modify(&verbs::Attr::from(attr), mask.bits())
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
    let connection = rdmacm::Connector::new((node, service)).connect_with(queue_pair)?;
    Ok(connection.close(rdmacm::CLOSE_DEADLINE)?)
}
