//! What events of connections carry.

use rdmacm_abi::{AhAttr, ConnParam, EventParam, MAX_PRIVATE_DATA, Reserved, UdParam};

use super::message::{Depths, Rep, Req};
use crate::host_state::EventDetails;

/// The bytes of each message that are private data.
pub(super) const REQUEST_DATA: usize = 92;
pub(super) const REPLY_DATA: usize = 196;
pub(super) const REJECT_DATA: usize = 148;
pub(super) const SERVICE_REQUEST_DATA: usize = 216;
pub(super) const SERVICE_REPLY_DATA: usize = 136;

/// The bytes of them that `struct cma_hdr` takes in requests over IP.
pub(super) const IP_HEADER: usize = 36;

/// Private data in a field of `size` bytes: its length is not sent, so the field is
/// padded with zeros.
fn padded(data: &[u8], size: usize) -> ([u8; MAX_PRIVATE_DATA], u8) {
    let mut field = [0; MAX_PRIVATE_DATA];
    for (to, byte) in field.iter_mut().zip(data.iter().take(size)) {
        *to = *byte;
    }
    (field, u8::try_from(size).unwrap_or(u8::MAX))
}

/// The parameters of an event that carries private data only.
pub(super) fn data_param(data: &[u8], size: usize) -> EventParam {
    let (private_data, private_data_len) = padded(data, size);
    EventParam::from_conn(&ConnParam {
        private_data,
        private_data_len,
        ..ConnParam::ZERO
    })
}

/// The peer's depths, as this side sees them.
fn conn_param(depths: Depths, qp_number: u32, (data, size): (&[u8], usize)) -> ConnParam {
    let (private_data, private_data_len) = padded(data, size);
    ConnParam {
        qp_number,
        responder_resources: depths.initiator_depth,
        initiator_depth: depths.responder_resources,
        flow_control: depths.flow_control,
        rnr_retry_count: depths.rnr_retry_count,
        srq: depths.srq,
        private_data,
        private_data_len,
        ..ConnParam::ZERO
    }
}

/// `cma_set_req_event_data`.
pub(super) fn request_details(req: &Req, is_native: bool) -> EventDetails {
    let size = if is_native {
        REQUEST_DATA
    } else {
        REQUEST_DATA - IP_HEADER
    };
    let param = ConnParam {
        retry_count: req.retry_count,
        ..conn_param(req.depths, req.qp_number, (&req.private_data, size))
    };
    EventDetails {
        ece: req.ece,
        ..EventDetails::with_param(&EventParam::from_conn(&param))
    }
}

/// `cma_set_rep_event_data`.
pub(super) fn reply_details(rep: &Rep) -> EventDetails {
    let param = conn_param(rep.depths, rep.qp_number, (&rep.private_data, REPLY_DATA));
    EventDetails {
        ece: rep.ece,
        ..EventDetails::with_param(&EventParam::from_conn(&param))
    }
}

/// The parameters of an event of a datagram id.
pub(crate) fn ud_param(
    (qp_number, qkey): (u32, u32),
    ah_attr: AhAttr,
    (data, size): (&[u8], usize),
) -> EventParam {
    let (private_data, private_data_len) = padded(data, size);
    EventParam::from_ud(&UdParam {
        qp_number,
        qkey,
        ah_attr,
        private_data,
        private_data_len,
        reserved: Reserved::ZERO,
    })
}
