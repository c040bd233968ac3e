//! error: Buffer: Clone` is not satisfied
//! error: Sge: Clone` is not satisfied
//! error: SgList: Clone` is not satisfied

use rdmacm::verbs::{Buffer, Sge, SgList, QueuePair};

fn twice<T: Clone + Into<SgList>>(queue_pair: &QueuePair, memory: T) {
    drop(queue_pair.post_receive(memory.clone()));
    drop(queue_pair.post_receive(memory));
}

fn main() {
    let _ = twice::<Buffer>;
    let _ = twice::<Sge>;
    let _ = twice::<SgList>;
}
