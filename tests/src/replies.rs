//! Datagrams that can be answered.

use rdmacm_core::UdInfo;
use rdmacm_verbs::{Done, QueuePair};
use zerocopy::FromZeros;

use crate::posted::done;

/// What stands in front of a datagram.
const ROUTE: usize = 40;

/// A datagram that came, with its way back.
#[derive(Debug)]
pub struct Answerable {
    /// What is said of it.
    pub told: Done,
    /// Where an answer goes that has this key.
    pub sender: UdInfo,
    /// What stands behind its route.
    pub bytes: Vec<u8>,
}

/// Waits for a datagram, whose sender takes answers with this key.
#[must_use]
pub fn receive_to_answer(queue_pair: &QueuePair, key: u32) -> Answerable {
    let completion = done(queue_pair.receive_queue());
    let told = completion.result.unwrap();
    let buffer = completion.pieces.into_buffer().unwrap();
    let gids = queue_pair.context().gids(1).unwrap();
    let mut sender = UdInfo::from(&rdmacm_abi::UdParam::new_zeroed());
    sender.qp_number = told.source.queue_pair;
    sender.qkey = key;
    sender.ah_attr = told.source.way_back(&buffer, 1, &gids).unwrap();
    Answerable {
        told,
        sender,
        bytes: buffer[ROUTE..told.bytes as usize].to_vec(),
    }
}
