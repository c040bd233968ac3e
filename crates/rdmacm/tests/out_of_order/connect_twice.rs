//! error: use of moved value: `resolved`
//! error: `resolved` moved due to this method call

use rdmacm::core::QueuePair;

fn twice<Q: QueuePair + 'static>(resolved: rdmacm::Resolved, one: Q, other: Q) {
    drop(resolved.connect_on(one));
    drop(resolved.connect_on(other));
}

fn main() {
    let _ = twice::<Box<dyn QueuePair>>;
}
