//! error: Buffer: Clone` is not satisfied
//! error: Piece: Clone` is not satisfied
//! error: Pieces: Clone` is not satisfied

use rdmacm::verbs::{Buffer, Piece, Pieces, QueuePair};

fn twice<T: Clone + Into<Pieces>>(queue_pair: &QueuePair, memory: T) {
    drop(queue_pair.post_receive(memory.clone()));
    drop(queue_pair.post_receive(memory));
}

fn main() {
    let _ = twice::<Buffer>;
    let _ = twice::<Piece>;
    let _ = twice::<Pieces>;
}
