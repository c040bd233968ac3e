//! What is in order.

use rdmacm::verbs::{
    Buffer, Completion, CompletionChannel, CompletionQueue, Context, RemoteAccessRegion, Sge, SgList,
    ProtectionDomain, QueuePair, RawRegion, RemoteMemory, SendOperation, SendRequest,
    SharedReceiveQueue,
};
use rdmacm::{Connection, Message};

/// What is posted comes back before it is used again.
fn post(queue_pair: &QueuePair, mut buffer: Buffer) -> Option<Buffer> {
    buffer.fill(7);
    queue_pair.post_receive(buffer).ok()?;
    let mut buffer = queue_pair
        .recv_cq()
        .poll()
        .ok()??
        .sg_list
        .into_buffer()?;
    buffer.fill(8);
    Some(buffer)
}

/// Bytes in line are copied, so they may be used and go at once.
fn in_line(queue_pair: &QueuePair) {
    let mut bytes = vec![1; 8];
    drop(queue_pair.post_send(SendRequest::inline(SendOperation::Send, &bytes)));
    bytes.fill(2);
}

/// Bytes of exposed memory are copied out.
fn copy(memory: &RemoteAccessRegion) -> [u8; 8] {
    let mut bytes = [0; 8];
    memory.read(0, &mut bytes);
    bytes
}

/// Memory of one's own takes a word for it.
fn raw(bytes: &[u8], key: u32) -> Sge {
    let address = bytes.as_ptr().expose_provenance() as u64;
    // SAFETY: it is not posted.
    unsafe { Sge::raw(address, 1, key) }
}

/// Any thread may have them, and several at once.
fn go_anywhere<T: Send + Sync + 'static>() {}

fn main() {
    let _ = (post, in_line, copy, raw);
    go_anywhere::<(Buffer, RemoteAccessRegion, RawRegion, RemoteMemory)>();
    go_anywhere::<(Sge, SgList, SendRequest<'static>, Completion)>();
    go_anywhere::<(Context, ProtectionDomain, QueuePair, SharedReceiveQueue)>();
    go_anywhere::<(CompletionQueue, CompletionChannel, Message, Connection)>();
}
