//! error: no method named `connect` found
//! error: there is a method `connect_with`

use rdmacm::core::QueuePair;

fn unresolved(connector: rdmacm::Connector, queue_pair: Box<dyn QueuePair>) {
    drop(connector.connect(queue_pair));
}

fn main() {
    let _ = unresolved;
}
