//! What a socket is made of, and how it is opened.

use std::io;
use std::sync::{Arc, OnceLock};

use rdmacm_core::{CmAddr, Error, EventKind, IdHandle, Operation, QpState, QpType, Transport};
use rdmacm_verbs::Context;

use super::address_handles::AddressHandles;
use super::datagram::{Local, ROUTE};
use super::groups::Groups;
use super::options::Choices;
use super::service::Service;
use crate::error::{Cause, Result};
use crate::hub::{Mailbox, Tracked};
use crate::messages::{MessageOptions, Traffic};
use crate::step::Step;
use crate::steps::Attempt;

/// What a socket is made of.
#[derive(Debug)]
pub(super) struct Open {
    // Before the id: its groups are left, then it.
    pub(super) groups: Groups,
    pub(super) tracked: Tracked,
    pub(super) traffic: Arc<Traffic>,
    pub(super) service: Service,
    pub(super) handles: AddressHandles,
    pub(super) local: Arc<Local>,
    pub(super) address: CmAddr,
    /// Bytes of the longest datagram.
    pub(super) longest: usize,
    /// What ended it.
    pub(super) over: OnceLock<EventKind>,
}

const NO_DEVICE: &str = "a datagram socket is of one device: bind it to an address of that";
const NO_DATAGRAMS: &str = "iWARP has no datagrams";

/// Binds an id and makes its queue pair, ready to send and to receive; then listens for
/// questions about it.
pub(super) fn open(attempt: &Attempt, address: CmAddr, choices: &Choices) -> Result<Open> {
    let hub = &attempt.hub;
    let refused = |error: Error| attempt.fail(Step::Bind, error);
    let id = choices.id.create(&hub.channel).map_err(refused)?;
    let tracked = Tracked::new(hub, id, Mailbox::with_room(choices.queue));
    let id = tracked.id();
    choices.id.apply(id).map_err(refused)?;
    id.bind(address).map_err(refused)?;
    check_device(id, address).map_err(|cause| attempt.fail_on(id, Step::Bind, cause))?;
    let made = make_queue_pair(attempt, id, choices);
    let (traffic, local, longest) =
        made.map_err(|cause| attempt.fail_on(id, Step::QueuePair, cause))?;
    id.listen(choices.backlog)
        .map_err(|error| attempt.fail_on(id, Step::Listen, error))?;
    let port = id.local_port();
    let port = port.map_err(|error| attempt.fail_on(id, Step::Listen, error))?;
    Ok(Open {
        groups: Groups::new(choices.id),
        traffic,
        service: Service::new(choices),
        handles: AddressHandles::default(),
        local: Arc::new(local),
        address: address.with_port(port),
        longest,
        over: OnceLock::new(),
        tracked,
    })
}

fn check_device(id: &IdHandle, address: CmAddr) -> Result<(), Cause> {
    if id.addresses()?.device.is_none() {
        return Err(Cause::Refused(Error::InvalidInput {
            operation: Box::new(Operation::Bind(address)),
            reason: NO_DEVICE,
        }));
    }
    let transport = id.rdma_device()?.map(|device| device.transport);
    if transport == Some(Transport::IWarp) {
        let error = io::Error::new(io::ErrorKind::Unsupported, NO_DATAGRAMS);
        return Err(Cause::QueuePair(error));
    }
    Ok(())
}

fn make_queue_pair(
    attempt: &Attempt,
    id: &IdHandle,
    choices: &Choices,
) -> Result<(Arc<Traffic>, Local, usize), Cause> {
    let addresses = id.addresses()?;
    let missing = || Cause::QueuePair(io::ErrorKind::NotFound.into());
    let device = attempt
        .hub
        .open_device(addresses.device.ok_or_else(missing)?)?;
    let port = addresses.port_number;
    let mtu = device.context().port(port)?.active_mtu;
    let longest = mtu.bytes().ok_or_else(missing)? as usize;
    let room = MessageOptions::new()
        .size(longest + ROUTE)
        .receives(choices.receives)
        .sends(choices.sends);
    room.check().map_err(Cause::QueuePair)?;
    let traffic = Traffic::new(&device, QpType::UD, room)?;
    id.with_queue_pair(traffic.queue_pair()).ready_to_send()?;
    traffic.post_all()?;
    let local = local(id, device.context(), port)?;
    Ok((traffic, local, longest))
}

fn local(id: &IdHandle, context: &Context, port: u8) -> Result<Local, Cause> {
    let gids = context.gids(port)?;
    let own = id.gids()?.source;
    let speaks_v2 = |kind: Option<&str>| kind == Some("RoCE v2");
    let of_own = || gids.iter().filter(|entry| entry.gid == own);
    let v2 = of_own().find(|entry| speaks_v2(entry.kind.as_deref()));
    let own = v2.or_else(|| of_own().next()).cloned();
    Ok(Local {
        port,
        qkey: id.init_qp_attr(QpState::INIT)?.qkey,
        gids,
        own,
    })
}
