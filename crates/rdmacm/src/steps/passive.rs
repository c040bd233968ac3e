//! The accepting side.

use std::sync::Arc;
use std::time::Instant;

use rdmacm_core::{CmAddr, CmId, ConnInfo, ConnParam, Event, EventKind, Family, QueuePair};

use super::active::{agreed, ends_attempt, ends_handshake, gone_or};
use super::{Attempt, Established};
use crate::ending::Ending;
use crate::error::{Cause, Result};
use crate::hub::{Letter, Mailbox, Tracked, is_iwarp, next};
use crate::id_options::IdOptions;
use crate::step::Step;

/// Ports of the kernel's choice that two families cannot have in common, or that
/// TCP has taken on iWARP, before it is given up.
const TRIES: usize = 16;

/// Ids that listen on an address, all with one mailbox: two of them for `[::]`,
/// one for each family, because iWARP's IPv6 wildcard refuses IPv4 peers.
pub(crate) fn listen(
    attempt: &Attempt,
    address: CmAddr,
    options: IdOptions,
    backlog: u32,
    mailbox: &Arc<Mailbox>,
) -> Result<Vec<Tracked>> {
    let is_v6 = address.family() == Family::V6;
    let both = is_v6 && address.is_unspecified() && !options.v6_only;
    let mut tries = if address.port() == 0 { TRIES } else { 1 };
    loop {
        let listening = if both {
            listen_on_both(attempt, address, options, backlog, mailbox)
        } else {
            let id = listen_on(attempt, address, options, backlog, mailbox, options.v6_only);
            id.map(|id| vec![id])
        };
        tries -= 1;
        match listening {
            Err(error) if tries > 0 && error.raw_os_error() == Some(libc::EADDRINUSE) => {}
            outcome => return outcome,
        }
    }
}

fn listen_on_both(
    attempt: &Attempt,
    v6: CmAddr,
    options: IdOptions,
    backlog: u32,
    mailbox: &Arc<Mailbox>,
) -> Result<Vec<Tracked>> {
    let v6 = listen_on(attempt, v6, options, backlog, mailbox, true)?;
    let port = v6.id().local_port();
    let port = port.map_err(|error| attempt.fail(Step::Listen, error))?;
    let v4 = CmAddr::any(Family::V4).with_port(port);
    let v4 = listen_on(attempt, v4, options, backlog, mailbox, false)?;
    Ok(vec![v6, v4])
}

fn listen_on(
    attempt: &Attempt,
    address: CmAddr,
    options: IdOptions,
    backlog: u32,
    mailbox: &Arc<Mailbox>,
    one_family: bool,
) -> Result<Tracked> {
    let step = Step::Listen;
    let refused = |error| attempt.fail(step, Cause::from(error));
    let id = options.create(&attempt.hub.channel);
    let tracked = Tracked::new(&attempt.hub, id.map_err(refused)?, Arc::clone(mailbox));
    let id = tracked.id();
    options.apply(id).map_err(refused)?;
    if one_family {
        id.set_af_only(true).map_err(refused)?;
    }
    id.bind(address).map_err(refused)?;
    id.listen(backlog).map_err(refused)?;
    Ok(tracked)
}

/// The next connect request: what the peer says, and the id it brings.
pub(crate) async fn next_request(
    attempt: &Attempt,
    mailbox: &Mailbox,
    until: Option<Instant>,
) -> Result<(Box<Event>, CmId)> {
    let step = Step::Accept;
    loop {
        let letter = next(&attempt.hub, mailbox, until).await;
        match letter.map_err(|error| attempt.fail(step, error))? {
            Letter::Event(mut event) => {
                if let Some(child) = event.take_child() {
                    // It may have been read where the listener was before.
                    let followed = child.migrate(&attempt.hub.channel);
                    followed.map_err(|error| attempt.fail(step, error))?;
                    return Ok((event, child));
                }
                // For whoever waits, now or later.
                if let Some(ending) = Ending::of(&event) {
                    mailbox.end(ending);
                }
            }
            Letter::Returned(_) => {}
            Letter::Stop => {
                let ending = mailbox.ending().and_then(|ending| ending.failure());
                let cause = ending.map_or(Cause::Stopped, Cause::Event);
                return Err(attempt.fail(step, cause));
            }
        }
    }
}

/// Accepts a request, and waits until the peer is there.
pub(crate) async fn establish(
    attempt: Attempt,
    mut tracked: Tracked,
    queue_pair: Arc<dyn QueuePair>,
    param: ConnParam,
    peer: Option<ConnInfo>,
) -> Result<Established> {
    let step = Step::Establish;
    let id = tracked.id().clone();
    tracked.attach(Arc::clone(&queue_pair));
    tracked.answer_parting();
    let accepted = id.with_queue_pair(queue_pair.as_ref()).accept(param);
    accepted.map_err(|error| {
        let cause = match error.raw_os_error() {
            // iWARP says so of a queue pair that is not its device's as well.
            Some(libc::EINVAL) if is_iwarp(queue_pair.as_ref()) => error.into(),
            _ => gone_or(error),
        };
        attempt.fail_on(&id, step, cause)
    })?;
    tracked.shakes_hands(true);
    loop {
        let letter = tracked.next(attempt.until).await;
        let event = match letter.map_err(|error| attempt.fail_on(&id, step, error))? {
            Letter::Event(event) => event,
            Letter::Returned(_) => continue,
            Letter::Stop => return Err(attempt.fail(step, Cause::Gone)),
        };
        if says_connected(&event) {
            tracked.shakes_hands(false);
            if let Some(ending) = Ending::of(&event) {
                tracked.mailbox().end(ending);
            }
            let established = agreed(&attempt, step, tracked, &event);
            // The request said it; on RoCE nothing more comes.
            return Ok(Established {
                peer,
                ..established
            });
        }
        if ends_attempt(&event) {
            if ends_handshake(&event) {
                tracked.shakes_hands(false);
            }
            return Err(attempt.failed(&id, step, &event));
        }
    }
}

/// The peer's word that it is connected, or that it parts, which on RoCE and
/// InfiniBand may be all that is heard of it: the kernel handles two messages at once,
/// on the processors they reached, and has no ear for readiness (RTU) after a parting
/// (DREQ). Nobody parts who was not connected.
fn says_connected(event: &Event) -> bool {
    let word = matches!(
        event.kind(),
        EventKind::Established | EventKind::Disconnected
    );
    word && event.failure().is_none()
}
