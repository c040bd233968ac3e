//! error: cannot move out of `buffer` because it is borrowed

use rdmacm::verbs::{Buffer, QueuePair};

fn look(queue_pair: &QueuePair, buffer: Buffer) -> u8 {
    let bytes = &buffer[..];
    drop(queue_pair.post_receive(buffer));
    bytes[0]
}

fn main() {
    let _ = look;
}
