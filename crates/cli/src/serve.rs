//! Serving peers.

use std::future::Future;
use std::net::SocketAddr;

use rdmacm::core::Deadline;
use rdmacm::tokio::{Incoming, Listener};
use tokio::task::JoinSet;

use crate::interrupt::Interrupt;
use crate::terminal;

/// Serves one peer, or any number at once until it is interrupted, and says of each
/// what became of it. Each hears the interrupt itself.
pub(crate) async fn serve<T, F>(
    address: SocketAddr,
    persistent: bool,
    interrupt: &Interrupt,
    peer: impl Fn(Incoming) -> F,
    mut over: impl FnMut(T),
) -> Result<(), rdmacm::Error>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let listener = Listener::bind(address)?;
    terminal::remark(&format!("listening on {}", listener.local_addr()));
    let mut peers = JoinSet::new();
    loop {
        tokio::select! {
            incoming = listener.accept(Deadline::Never) => {
                peers.spawn(peer(incoming?));
                if !persistent {
                    break;
                }
            }
            Some(ended) = peers.join_next() => ended.into_iter().for_each(&mut over),
            () = interrupt.wait() => break,
        }
    }
    // Whoever comes now is rejected.
    drop(listener);
    while let Some(ended) = peers.join_next().await {
        ended.into_iter().for_each(&mut over);
    }
    Ok(())
}

/// Who wants to connect.
pub(crate) fn peer_of(incoming: &Incoming) -> String {
    let peer = incoming.peer_addr().ok().flatten();
    peer.map_or_else(|| "?".to_owned(), |peer| peer.to_string())
}
