//! error: no method named `connect_on` found
//! error: there is a method `connect` with a similar name, but with different arguments

use rdmacm::core::QueuePair;

fn unresolved(connector: rdmacm::Connector, queue_pair: Box<dyn QueuePair>) {
    drop(connector.connect_on(queue_pair));
}

fn main() {
    let _ = unresolved;
}
