//! Serving peers.

use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use rdmacm::Cause;
use rdmacm::core::{Deadline, RdmaDevice};
use rdmacm::tokio::{Incoming, Listener};
use rdmacm_verbs::Context;
use tokio::time::sleep;

use crate::args::ServerArgs;
use crate::devices::NO_DEVICE;
use crate::interrupt::Interrupt;
use crate::server_report::{PeerOutcome, PeerResult};
use crate::terminal;
use peer_tasks::PeerTasks;

mod peer_tasks;

/// How long a server pauses after an error.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves one peer, or several at once until a signal arrives, and reports the result of
/// each. `peer` watches for the signal itself.
pub(crate) async fn serve<F>(
    address: SocketAddr,
    args: ServerArgs,
    interrupt: &Interrupt,
    peer: impl Fn(Incoming) -> F,
    mut over: impl AsyncFnMut(PeerResult),
) -> Result<(), String>
where
    F: Future<Output = PeerResult> + Send + 'static,
{
    let listener = Listener::bind(address).map_err(|error| error.to_string())?;
    check_devices(&listener)?;
    terminal::print_notice(&format!("listening on {}", listener.local_addr()));
    let is_wildcard = listener.local_addr().is_unspecified();
    let mut closed = None;
    let mut failed = None;
    let mut peers = PeerTasks::default();
    loop {
        tokio::select! {
            // Peers may still arrive through other devices than the one whose socket is closed.
            incoming = listener.accept(Deadline::Never), if closed.is_none() || is_wildcard => {
                let incoming = match incoming {
                    Ok(incoming) => incoming,
                    Err(error) if matches!(error.cause(), Cause::ListenerSocketClosed { .. }) => {
                        terminal::print_notice(&error.to_string());
                        closed = Some(error.to_string());
                        continue;
                    }
                    Err(error) if error.ends_listener() => {
                        failed = Some(error.to_string());
                        break;
                    }
                    Err(error) => {
                        notice_and_pause(&error).await;
                        continue;
                    }
                };
                while let Some(served) = peers.try_join_next() {
                    over(served).await;
                }
                if peers.len() >= args.max_clients() {
                    let limit = args.max_clients();
                    let reason = format!("the server is full: it serves {limit} at once");
                    over(reject(incoming, reason)).await;
                    continue;
                }
                peers.spawn(peer_of(&incoming), peer(incoming));
                if !args.persistent {
                    break;
                }
            }
            Some(served) = peers.join_next() => over(served).await,
            () = interrupt.wait() => break,
        }
    }
    // From here on the kernel rejects new peers.
    drop(listener);
    while let Some(served) = peers.join_next().await {
        over(served).await;
    }
    if closed.is_some() {
        stay_after_lost_socket(failed.as_deref(), interrupt).await;
    }
    failed.or(closed).map_or(Ok(()), Err)
}

/// Waits for a signal after siw has closed a listener's socket: ending the process may crash the
/// kernel, so the user decides when. Reports what else has failed before.
pub(crate) async fn stay_after_lost_socket(failure: Option<&str>, interrupt: &Interrupt) {
    if let Some(failure) = failure {
        terminal::print_notice(failure);
    }
    interrupt.wait().await;
}

/// After an error of a single wait for a peer: the next one may fail for the same reason.
pub(crate) async fn notice_and_pause(error: &impl Display) {
    terminal::print_notice(&error.to_string());
    sleep(PAUSE).await;
}

/// Checks that a device can be opened. Listening needs only the connection manager's node,
/// serving also the device's verbs node.
pub(crate) fn check_devices(listener: &Listener) -> Result<(), String> {
    let mut ids = listener.ids();
    let bound = ids.find_map(|id| id.addresses().ok()?.device);
    if let Some(device) = bound {
        let opened = Context::open_by_id(device);
        return opened.map(drop).map_err(|error| error.to_string());
    }
    let devices = RdmaDevice::list().map_err(|error| error.to_string())?;
    if devices.is_empty() {
        terminal::print_notice(NO_DEVICE);
        return Ok(());
    }
    // One that can be opened is enough for an address that belongs to all of them.
    let mut first = None;
    for device in &devices {
        match Context::open(device) {
            Ok(_) => return Ok(()),
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    first.map_or(Ok(()), |error| Err(error.to_string()))
}

/// Rejects a peer with the reason as private data.
pub(crate) fn reject(incoming: Incoming, reason: String) -> PeerResult {
    let peer = peer_of(&incoming);
    // The peer may have disconnected already.
    let _ = incoming.reject(reason.as_bytes());
    PeerResult {
        peer,
        done: String::new(),
        pings: None,
        verdict: PeerOutcome::Rejected(reason),
    }
}

/// The address of the peer.
pub(crate) fn peer_of(incoming: &Incoming) -> String {
    let peer = incoming.peer_addr().ok();
    peer.map_or_else(|| "?".to_owned(), |peer| peer.to_string())
}
