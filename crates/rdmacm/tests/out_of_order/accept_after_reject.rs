//! error: use of moved value: `incoming`
//! error: `incoming` moved due to this method call

use rdmacm::core::QueuePair;

fn both(incoming: rdmacm::Incoming, queue_pair: Box<dyn QueuePair>) {
    drop(incoming.reject(b"no"));
    drop(incoming.accept_on(queue_pair));
}

fn main() {
    let _ = both;
}
