//! What is in order.

use rdmacm::core::{IdHandle, QueuePair};
use rdmacm::{Connector, Listener, Result};

fn connect<Q: QueuePair + 'static>(make: impl Fn(&IdHandle) -> Q) -> Result<()> {
    let resolved = Connector::new(("storage-7", "7471")).resolve()?;
    let queue_pair = make(resolved.id());
    let connection = resolved.connect_on(queue_pair)?;
    connection.close(rdmacm::CLOSE_DEADLINE)
}

fn accept<Q: QueuePair + 'static>(make: impl Fn(&IdHandle) -> Q) -> Result<()> {
    let listener = Listener::bind("[::]:7471")?;
    let incoming = listener.accept(rdmacm::ACCEPT_DEADLINE)?;
    let queue_pair = make(incoming.id());
    incoming.accept_on(queue_pair).map(drop)
}

async fn await_it<Q: QueuePair + 'static>(make: impl Fn(&IdHandle) -> Q) -> Result<()> {
    let connector = rdmacm::tokio::Connector::new(("storage-7", "7471"));
    let resolved = connector.resolve().await?;
    let queue_pair = make(resolved.id());
    resolved.connect_on(queue_pair).await.map(drop)
}

fn is_send<T: Send>(value: T) -> T {
    value
}

/// With queue pairs of some kind; a future may go to another thread.
fn all(make: fn(&IdHandle) -> Box<dyn QueuePair>) {
    drop((connect(make), accept(make), is_send(await_it(make))));
}

fn main() {
    let _ = all;
}
