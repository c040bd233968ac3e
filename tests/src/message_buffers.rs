//! Queue pairs with buffers for messages, and messages.

use rdmacm_core::{IdHandle, QpType};
use rdmacm_verbs::{Completion, CompletionQueue, QpCaps, QueuePair, SendOperation, SendRequest};

use crate::site::{PATIENCE, Site};

impl Site {
    /// Creates a queue pair for an id's connection, with buffers for `count` messages
    /// of `size` bytes.
    #[must_use]
    pub fn posted(&self, id: &IdHandle, messages: u32, bytes: usize) -> QueuePair {
        let caps = QpCaps {
            max_send_wr: messages,
            max_recv_wr: messages,
            ..QpCaps::default()
        };
        let options = QueuePair::options(QpType::RC)
            .caps(caps)
            .with_completion_channels();
        let queue_pair = options.create(&self.verbs()).unwrap();
        // In RESET the queue pair takes no receive requests.
        id.with_queue_pair(&queue_pair).init().unwrap();
        for _ in 0..messages {
            let room = queue_pair.protection_domain().allocate(bytes).unwrap();
            queue_pair.post_receive(room).unwrap();
        }
        queue_pair
    }
}

/// Sends a message and waits for its completion.
#[track_caller]
pub fn send(queue_pair: &QueuePair, bytes: &[u8]) {
    post_message(queue_pair, bytes);
    drop(done(queue_pair.send_cq()));
}

/// Posts a message without waiting for its completion. If the peer disconnects when it
/// has the message, rxe may never acknowledge it.
pub fn post_message(queue_pair: &QueuePair, bytes: &[u8]) {
    let memory = queue_pair.protection_domain().register(bytes).unwrap();
    let request = SendRequest::new(SendOperation::Send, memory);
    queue_pair.post_send(request).unwrap();
}

/// Waits for a message.
#[must_use]
#[track_caller]
pub fn receive(queue_pair: &QueuePair) -> Vec<u8> {
    let completion = done(queue_pair.recv_cq());
    let length = completion.result().unwrap().bytes;
    let buffer = completion.sg_list.into_buffer().unwrap();
    buffer[..length as usize].to_vec()
}

/// The next completion, which must be a success.
#[track_caller]
pub(crate) fn done(queue: &CompletionQueue) -> Completion {
    let completion = queue.next(PATIENCE).unwrap().unwrap();
    assert_eq!(completion.result().err(), None);
    completion
}
