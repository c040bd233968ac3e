//! error: use of moved value: `buffer`
//! error: borrow of moved value: `piece`
//! error: borrow of moved value: `pieces`

use rdmacm::verbs::{Buffer, Piece, Pieces, QueuePair, SendOperation, SendRequest};

fn whole(queue_pair: &QueuePair, buffer: Buffer) {
    drop(queue_pair.post_receive(buffer));
    drop(buffer);
}

fn part(queue_pair: &QueuePair, piece: Piece) {
    drop(queue_pair.post_receive(piece));
    let _ = piece.len();
}

fn several(queue_pair: &QueuePair, pieces: Pieces) {
    let request = SendRequest::new(SendOperation::Send, pieces);
    drop(queue_pair.post_send(request));
    let _ = pieces.len();
}

fn main() {
    let _ = (whole, part, several);
}
