//! error: borrow of moved value: `connection`
//! error: `connection` moved due to this method call

use rdmacm::core::QueuePair;

fn after(connection: rdmacm::Connection<Box<dyn QueuePair>>) {
    drop(connection.close(rdmacm::CLOSE_DEADLINE));
    let _ = connection.queue_pair();
}

fn main() {
    let _ = after;
}
