//! A datagram socket, and how it is opened.

use std::io;
use std::sync::{Arc, OnceLock};

use rdmacm_core::{CmAddr, EventKind, Gid, IdHandle, Operation, QpState, QpType, Transport};
use rdmacm_verbs::Context;

use super::address_handles::AddressHandles;
use super::config::DatagramConfig;
use super::datagram::{GRH_SIZE, Local};
use super::groups::Groups;
use super::path_addresses::PathAddresses;
use super::sidr_replies::SidrReplies;
use crate::attempt::Attempt;
use crate::data::OpenDevice;
use crate::error::{Cause, Error, Result};
use crate::event_loop::{DEFAULT_MAX_REQUESTS, EventQueue, ManagedId};
use crate::messages::{MessageOptions, MessageQueuePair};
use crate::stage::Stage;

/// A socket: an id, a datagram queue pair, and the groups that it is a member of.
#[derive(Debug)]
pub(crate) struct Socket {
    // Dropped before the id: groups are left first.
    pub(super) groups: Groups,
    pub(super) id: ManagedId,
    pub(super) queue_pair: Arc<MessageQueuePair>,
    pub(super) sidr_replies: SidrReplies,
    pub(super) handles: AddressHandles,
    pub(super) local: Arc<Local>,
    pub(super) address: CmAddr,
    /// Bytes of the longest datagram.
    pub(super) longest: usize,
    /// The event that closed it.
    pub(super) closed: OnceLock<EventKind>,
}

const NO_DEVICE: &str = "a datagram socket is of one device: bind it to an address of the device";
const NO_DATAGRAMS: &str = "iWARP has no datagrams";

impl Socket {
    /// Binds an id and creates its queue pair, ready to send and to receive; then listens for
    /// peers that resolve it, if they may.
    pub(crate) fn open(
        attempt: &Attempt,
        address: CmAddr,
        config: &DatagramConfig,
    ) -> Result<Self> {
        let event_loop = &attempt.event_loop;
        let refused = |error| attempt.fail(Stage::Bind, Cause::from(error));
        let queue = EventQueue::for_requests(DEFAULT_MAX_REQUESTS);
        let managed = config.id.create(event_loop, queue).map_err(refused)?;
        let id = managed.id();
        id.bind(address).map_err(refused)?;
        check_device(id, address).map_err(|cause| attempt.fail_on(id, Stage::Bind, cause))?;
        let (queue_pair, local, longest) = create_queue_pair(attempt, id, config)
            .map_err(|cause| attempt.fail_on(id, Stage::QueuePair, cause))?;
        let failed = |error| -> Error { attempt.fail_on(id, Stage::Listen, Cause::from(error)) };
        if config.listens {
            // With the kernel's maximum as the backlog.
            id.listen(0).map_err(failed)?;
        }
        let port = id.local_port().map_err(failed)?;
        Ok(Self {
            groups: Groups::new(config.id),
            queue_pair,
            sidr_replies: SidrReplies::new(config),
            handles: AddressHandles::default(),
            local: Arc::new(local),
            address: address.with_port(port),
            longest,
            closed: OnceLock::new(),
            id: managed,
        })
    }

    pub(crate) fn address(&self) -> CmAddr {
        self.address
    }

    pub(crate) fn queue_pair(&self) -> &Arc<MessageQueuePair> {
        &self.queue_pair
    }

    pub(crate) fn qkey(&self) -> u32 {
        self.local.qkey
    }

    /// The GID of the address it is bound to.
    pub(crate) fn gid(&self) -> Option<Gid> {
        self.local.own.as_ref().map(|entry| entry.gid)
    }

    /// Creates address handles for paths, without the socket.
    pub(crate) fn path_addresses(&self) -> PathAddresses {
        PathAddresses {
            local: Arc::clone(&self.local),
            domain: self.queue_pair.protection_domain().clone(),
        }
    }

    pub(crate) fn max_datagram(&self) -> usize {
        self.longest
    }
}

fn check_device(id: &IdHandle, address: CmAddr) -> Result<(), Cause> {
    if id.addresses()?.device.is_none() {
        return Err(Cause::Refused(rdmacm_core::Error::InvalidInput {
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

fn create_queue_pair(
    attempt: &Attempt,
    id: &IdHandle,
    config: &DatagramConfig,
) -> Result<(Arc<MessageQueuePair>, Local, usize), Cause> {
    let addresses = id.addresses()?;
    let missing = || Cause::QueuePair(io::ErrorKind::NotFound.into());
    let device = addresses.device.ok_or_else(missing)?;
    let device = OpenDevice::open(&attempt.event_loop, device).map_err(Cause::device)?;
    let port = addresses.port_number;
    let port_attr = device.context().port(port).map_err(Cause::device)?;
    let mtu = port_attr.active_mtu;
    let longest = mtu.bytes().ok_or_else(missing)? as usize;
    let options = MessageOptions::new()
        .size(longest + GRH_SIZE)
        .receives(config.receives)
        .sends(config.sends);
    options.check().map_err(Cause::QueuePair)?;
    let now = attempt.event_loop.now();
    let queue_pair =
        MessageQueuePair::new(&device, QpType::UD, options, now).map_err(Cause::device)?;
    id.with_queue_pair(queue_pair.queue_pair())
        .ready_to_send()?;
    queue_pair.post_receives().map_err(Cause::device)?;
    let local = local(id, device.context(), port)?;
    Ok((queue_pair, local, longest))
}

fn local(id: &IdHandle, context: &Context, port: u8) -> Result<Local, Cause> {
    let gids = context.gids(port).map_err(Cause::device)?;
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
