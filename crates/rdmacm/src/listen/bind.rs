//! Making ids that listen.

use std::sync::Arc;

use rdmacm_core::{CmAddr, Family};

use super::ListenConfig;
use crate::attempt::Attempt;
use crate::error::{Cause, Result};
use crate::event_loop::{EventQueue, ManagedId};
use crate::stage::Stage;

/// How often a port of the kernel's choice is tried that the other address family, or TCP
/// on iWARP, uses already.
const MAX_TRIES: usize = 16;

/// Ids that listen on an address, with one event queue: two ids for `[::]`, one for each
/// family, because iWARP's IPv6 wildcard refuses IPv4 peers.
pub(super) fn listen(
    attempt: &Attempt,
    address: CmAddr,
    config: ListenConfig,
    requests: &Arc<EventQueue>,
) -> Result<Vec<ManagedId>> {
    let v6_only = config.options.v6_only;
    let both = address.family() == Family::V6 && address.is_unspecified() && !v6_only;
    let mut tries = if address.port() == 0 { MAX_TRIES } else { 1 };
    loop {
        let listening = if both {
            listen_on_both(attempt, address, config, requests)
        } else {
            listen_on(attempt, address, config, requests, v6_only).map(|id| vec![id])
        };
        tries -= 1;
        match listening {
            Err(error) if tries > 0 && error.is_port_taken() => {}
            outcome => return outcome,
        }
    }
}

fn listen_on_both(
    attempt: &Attempt,
    v6: CmAddr,
    config: ListenConfig,
    requests: &Arc<EventQueue>,
) -> Result<Vec<ManagedId>> {
    let v6 = listen_on(attempt, v6, config, requests, true)?;
    let port = v6.id().local_port();
    let port = port.map_err(|error| attempt.fail(Stage::Listen, error))?;
    let v4 = CmAddr::any(Family::V4).with_port(port);
    let v4 = listen_on(attempt, v4, config, requests, false)?;
    Ok(vec![v6, v4])
}

fn listen_on(
    attempt: &Attempt,
    address: CmAddr,
    config: ListenConfig,
    requests: &Arc<EventQueue>,
    one_family: bool,
) -> Result<ManagedId> {
    let refused = |error| attempt.fail(Stage::Listen, Cause::from(error));
    let requests = Arc::clone(requests);
    let managed = config.options.create(&attempt.event_loop, requests);
    let managed = managed.map_err(refused)?;
    let id = managed.id();
    if one_family {
        id.set_af_only(true).map_err(refused)?;
    }
    id.bind(address).map_err(refused)?;
    id.listen(config.backlog).map_err(refused)?;
    Ok(managed)
}
