//! error: use of moved value: `buffer`
//! error: borrow of moved value: `sge`
//! error: borrow of moved value: `sg_list`

use rdmacm::verbs::{Buffer, Sge, SgList, QueuePair, SendOperation, SendRequest};

fn whole(queue_pair: &QueuePair, buffer: Buffer) {
    drop(queue_pair.post_receive(buffer));
    drop(buffer);
}

fn part(queue_pair: &QueuePair, sge: Sge) {
    drop(queue_pair.post_receive(sge));
    let _ = sge.len();
}

fn several(queue_pair: &QueuePair, sg_list: SgList) {
    let request = SendRequest::new(SendOperation::Send, sg_list);
    drop(queue_pair.post_send(request));
    let _ = sg_list.len();
}

fn main() {
    let _ = (whole, part, several);
}
