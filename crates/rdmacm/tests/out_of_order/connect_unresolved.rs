//! error: no method named `connect` found for struct `rdmacm::face::Connector<rdmacm::Blocking>`

use rdmacm::core::QueuePair;

fn unresolved(connector: rdmacm::Connector, queue_pair: Box<dyn QueuePair>) {
    drop(connector.connect(queue_pair));
}

fn main() {
    let _ = unresolved;
}
