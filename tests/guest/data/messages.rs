//! Messages.

use rdmacm_core::AccessFlags;
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_verbs::{SendOperation, SendRequest, WcOpcode};

crate::cases!(
    "data::messages": a_message_arrives, a_write_and_a_read
);

fn a_message_arrives(site: &Site) {
    let pair = site.pair();
    let (server, client) = (&pair.server.queue_pair, &pair.client.queue_pair);
    let room = server.protection_domain().allocate(64).unwrap();
    server.post_receive(room).unwrap();
    let mut buffer = client.protection_domain().allocate(64).unwrap();
    buffer[..5].copy_from_slice(b"hello");
    let piece = buffer.part(0..5).unwrap();
    let sent = client
        .post_send(SendRequest::new(SendOperation::Send, piece))
        .unwrap();
    let done = client.send_queue().next(PATIENCE).unwrap().unwrap();
    assert_eq!(done.work, sent);
    assert_eq!(done.result.unwrap().opcode, WcOpcode::SEND);
    assert_eq!(done.pieces.into_buffer().unwrap().len(), 64);
    let got = server.receive_queue().next(PATIENCE).unwrap().unwrap();
    assert_eq!(got.result.unwrap().bytes, 5);
    assert_eq!(&got.pieces.into_buffer().unwrap()[..5], b"hello");
}

fn a_write_and_a_read(site: &Site) {
    let pair = site.pair();
    let (server, client) = (&pair.server.queue_pair, &pair.client.queue_pair);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    let memory = server.protection_domain().expose(4096, access).unwrap();
    let mut buffer = client.protection_domain().allocate(4096).unwrap();
    buffer.fill(7);
    client
        .post_send(SendRequest::new(
            SendOperation::Write(memory.remote()),
            buffer,
        ))
        .unwrap();
    let done = client.send_queue().next(PATIENCE).unwrap().unwrap();
    assert_eq!(done.result.unwrap().opcode, WcOpcode::RDMA_WRITE);
    let mut buffer = done.pieces.into_buffer().unwrap();
    buffer.fill(0);
    client
        .post_send(SendRequest::new(
            SendOperation::Read(memory.remote()),
            buffer,
        ))
        .unwrap();
    let done = client.send_queue().next(PATIENCE).unwrap().unwrap();
    assert_eq!(done.result.unwrap().opcode, WcOpcode::RDMA_READ);
    assert_eq!(*done.pieces.into_buffer().unwrap(), [7; 4096]);
    let mut seen = [0; 4096];
    memory.read(0, &mut seen);
    assert_eq!(seen, [7; 4096]);
}
