//! error: SgList: From<&mut [u8]>` is not satisfied
//! error: SgList: From<&[u8]>` is not satisfied
//! error: SgList: From<Vec<u8>>` is not satisfied

use rdmacm::verbs::{QueuePair, SendOperation, SendRequest};

fn receive(queue_pair: &QueuePair, bytes: &mut [u8]) {
    drop(queue_pair.post_receive(bytes));
}

fn send(queue_pair: &QueuePair, bytes: &[u8]) {
    drop(queue_pair.post_send(SendRequest::new(SendOperation::Send, bytes)));
}

fn send_owned(queue_pair: &QueuePair, bytes: Vec<u8>) {
    drop(queue_pair.post_send(SendRequest::new(SendOperation::Send, bytes)));
}

fn main() {
    let _ = (receive, send, send_owned);
}
