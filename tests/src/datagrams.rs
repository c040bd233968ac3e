//! Datagrams of RoCE.

use std::time::Duration;

use rdmacm_core::{IdHandle, QpAttr, QpAttrMask, QpState, QpType, UdInfo};
use rdmacm_verbs::{Done, QpCaps, QueuePair, SendOperation, SendRequest};
use zerocopy::FromZeros;

use crate::posted::done;
use crate::site::{PATIENCE, Site};

/// What stands in front of a datagram.
const ROUTE: usize = 40;

impl Site {
    /// A datagram queue pair that sends and receives, for an id with a device, with
    /// room for so many datagrams of so many bytes each.
    #[must_use]
    pub fn datagrams(&self, id: &IdHandle, messages: u32, bytes: usize) -> QueuePair {
        let caps = QpCaps {
            max_send_wr: messages,
            max_recv_wr: messages,
            ..QpCaps::default()
        };
        let options = QueuePair::options(QpType::UD).caps(caps).waitable();
        let queue_pair = options.create(&self.verbs()).unwrap();
        id.with(&queue_pair).init().unwrap();
        for (state, mask) in [
            (QpState::RTR, QpAttrMask::STATE),
            (QpState::RTS, QpAttrMask::STATE | QpAttrMask::SQ_PSN),
        ] {
            let mut attr = QpAttr::new_zeroed();
            attr.qp_state = state;
            queue_pair.modify(&attr, mask).unwrap();
        }
        for _ in 0..messages {
            let domain = queue_pair.protection_domain();
            let room = domain.allocate(ROUTE + bytes).unwrap();
            queue_pair.post_receive(room).unwrap();
        }
        queue_pair
    }
}

/// Sends a datagram with this queue pair's number, as the C tools do, and waits until
/// that is done.
pub fn send_datagram(queue_pair: &QueuePair, to: &UdInfo, bytes: &[u8]) {
    let domain = queue_pair.protection_domain();
    let way = domain.create_address_handle(to.ah_attr).unwrap();
    let memory = domain.register(bytes).unwrap();
    let operation = SendOperation::SendWithImmediate(queue_pair.number());
    let request = SendRequest::new(operation, memory).to(&way, to.qp_number, to.qkey);
    queue_pair.post_send(request).unwrap();
    drop(done(queue_pair.send_queue()));
}

/// Waits for a datagram: what is said of it, and what stands behind its route.
#[must_use]
pub fn receive_datagram(queue_pair: &QueuePair) -> (Done, Vec<u8>) {
    next_datagram(queue_pair, PATIENCE).unwrap()
}

/// The same, where none need come.
#[must_use]
pub fn next_datagram(queue_pair: &QueuePair, within: Duration) -> Option<(Done, Vec<u8>)> {
    let completion = queue_pair.receive_queue().next(within).unwrap()?;
    let told = completion.result.unwrap();
    let buffer = completion.pieces.into_buffer().unwrap();
    Some((told, buffer[ROUTE..told.bytes as usize].to_vec()))
}
