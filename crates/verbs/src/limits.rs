//! Limits of a device.

use rdmacm_abi::uverbs::QueryDeviceResponse;
use rdmacm_core::{DepthLimits, Guid};

/// The limits of a device, as its driver reports them. Those of a soft device are large round
/// numbers; memory may be exhausted before. Source: `ibv_query_device(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_device_attr")]
#[non_exhaustive]
pub struct DeviceLimits {
    /// The node's GUID.
    pub node_guid: Guid,
    /// The number of ports.
    #[doc(alias = "phys_port_cnt")]
    pub port_count: u8,
    /// Queue pairs.
    pub max_qp: u32,
    /// Requests a queue holds.
    pub max_qp_wr: u32,
    /// Scatter/gather entries of a request.
    pub max_sge: u32,
    /// Scatter/gather entries of a read request.
    pub max_sge_rd: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Completions a queue holds.
    pub max_cqe: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// Registered regions of memory.
    pub max_mr: u32,
    /// Address handles.
    pub max_ah: u32,
    /// Shared receive queues; 0 if the device does not support them.
    pub max_srq: u32,
    /// Requests a shared receive queue holds.
    pub max_srq_wr: u32,
    /// Scatter/gather entries of a request of a shared receive queue.
    pub max_srq_sge: u32,
    /// Outstanding reads and atomics that a queue pair accepts.
    pub max_qp_rd_atom: u32,
    /// Outstanding reads and atomics that a queue pair initiates.
    pub max_qp_init_rd_atom: u32,
}

impl DeviceLimits {
    /// The depths that a connection may request: those of the device, at most 255.
    #[must_use]
    pub fn depths(&self) -> DepthLimits {
        let byte = |limit: u32| u8::try_from(limit).unwrap_or(u8::MAX);
        DepthLimits {
            responder_resources: byte(self.max_qp_rd_atom),
            initiator_depth: byte(self.max_qp_init_rd_atom),
        }
    }
}

impl From<QueryDeviceResponse> for DeviceLimits {
    fn from(answer: QueryDeviceResponse) -> Self {
        Self {
            node_guid: Guid(answer.node_guid.get()),
            port_count: answer.port_count,
            max_qp: answer.max_qp,
            max_qp_wr: answer.max_qp_wr,
            max_sge: answer.max_sge,
            max_sge_rd: answer.max_sge_rd,
            max_cq: answer.max_cq,
            max_cqe: answer.max_cqe,
            max_pd: answer.max_pd,
            max_mr: answer.max_mr,
            max_ah: answer.max_ah,
            max_srq: answer.max_srq,
            max_srq_wr: answer.max_srq_wr,
            max_srq_sge: answer.max_srq_sge,
            max_qp_rd_atom: answer.max_qp_rd_atom,
            max_qp_init_rd_atom: answer.max_qp_init_rd_atom,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn depths_are_clamped_to_a_byte() {
        let mut answer = QueryDeviceResponse::new_zeroed();
        (answer.max_qp_rd_atom, answer.max_qp_init_rd_atom) = (128, 70_000);
        let expected = DepthLimits {
            responder_resources: 128,
            initiator_depth: 255,
        };
        assert_eq!(DeviceLimits::from(answer).depths(), expected);
    }
}
