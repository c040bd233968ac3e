//! Commands, as the functions of the kernel's `ucma.c` execute them.

use std::io;

use nix::errno::Errno;
use rdmacm_abi::{
    Accept, Bind, BindIp, CommandNumber, Connect, CreateId, DestroyId, Disconnect, InitQpAttr,
    JoinIpMulticast, JoinMulticast, LeaveMulticast, Listen, MigrateId, Notify, Query, Reject,
    ResolveAddr, ResolveIbService, ResolveIp, ResolveRoute, SetOption, WriteCmEvent,
};
use rdmacm_core::ucma::Call;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::host_state::HostState;
use crate::id::{Id, IdKey};
use crate::iwarp;
use crate::sim_state::SimState;

mod bind;
mod connect;
mod disconnect;
mod event;
mod id;
mod listen;
mod migrate;
mod multicast;
mod option;
mod qp_attr;
mod query;
mod resolve;
mod route;
mod service;

/// The simulated kernel of one host, as one of its files sees it.
pub(crate) struct Kernel<'state> {
    pub(crate) state: &'state mut SimState,
    pub(crate) host: usize,
    /// The file to which the command was written.
    pub(crate) file: u64,
}

/// The result of a command.
pub(crate) type Outcome = Result<(), Errno>;

/// An error number, also one that C libraries have no name for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandError(i32);

impl CommandError {
    pub(crate) const fn new(number: i32) -> Self {
        Self(number)
    }
}

impl From<Errno> for CommandError {
    fn from(errno: Errno) -> Self {
        Self(errno as i32)
    }
}

impl From<CommandError> for io::Error {
    fn from(error: CommandError) -> Self {
        Self::from_raw_os_error(error.0)
    }
}

/// A command that blocks until the peer of an iWARP connection, or the subnet administrator, has
/// answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked {
    id: IdKey,
    command: BlockedCommand,
}

#[derive(Clone, Copy, Debug)]
enum BlockedCommand {
    Connect,
    Disconnect,
    Destroy,
}

impl Kernel<'_> {
    fn host(&mut self) -> Result<&mut HostState, Errno> {
        self.state.hosts.get_mut(self.host).ok_or(Errno::ENXIO)
    }

    fn find(&mut self, number: u32) -> Result<&mut Id, Errno> {
        let file = self.file;
        self.host()?.find(file, number)
    }

    fn find_attached(&mut self, number: u32) -> Result<&mut Id, Errno> {
        let file = self.file;
        self.host()?.find_attached(file, number)
    }

    fn key(&self, number: u32, serial: u64) -> IdKey {
        IdKey {
            host: self.host,
            number,
            serial,
        }
    }

    /// The key of an id that is attached to a device.
    fn attached_key(&mut self, number: u32) -> Result<IdKey, Errno> {
        let serial = self.find_attached(number)?.serial;
        Ok(self.key(number, serial))
    }
}

/// Executes one command (`ucma_write`); returns one that blocks instead of its
/// result.
pub(crate) fn execute(
    kernel: &mut Kernel<'_>,
    call: &mut Call<'_>,
) -> Result<Option<Blocked>, CommandError> {
    let host = kernel.host()?;
    if call.number() >= host.version.end_of_table() {
        return Err(Errno::EINVAL.into());
    }
    if let Some(errno) = host.take_failure(call.number()) {
        return Err(CommandError::new(errno));
    }
    match call.number() {
        CommandNumber::CONNECT => Ok(connect::connect(kernel, &read::<Connect>(call)?)?),
        CommandNumber::DISCONNECT => Ok(disconnect::disconnect(kernel, read::<Disconnect>(call)?)?),
        CommandNumber::DESTROY_ID => Ok(id::destroy(kernel, &read::<DestroyId>(call)?, call)?),
        CommandNumber::JOIN_MCAST => {
            multicast::join(kernel, &read::<JoinMulticast>(call)?, call).map(|()| None)
        }
        CommandNumber::JOIN_IP_MCAST => {
            multicast::join_ip(kernel, &read::<JoinIpMulticast>(call)?, call).map(|()| None)
        }
        _ => Ok(execute_at_once(kernel, call).map(|()| None)?),
    }
}

/// Executes a command that never blocks.
fn execute_at_once(kernel: &mut Kernel<'_>, call: &mut Call<'_>) -> Outcome {
    match call.number() {
        CommandNumber::CREATE_ID => id::create(kernel, &read::<CreateId>(call)?, call),
        CommandNumber::BIND => bind::bind(kernel, &read::<Bind>(call)?),
        CommandNumber::BIND_IP => bind::bind_ip(kernel, &read::<BindIp>(call)?),
        CommandNumber::RESOLVE_ADDR => resolve::address(kernel, &read::<ResolveAddr>(call)?),
        CommandNumber::RESOLVE_IP => resolve::ip_address(kernel, &read::<ResolveIp>(call)?),
        CommandNumber::RESOLVE_ROUTE => route::resolve(kernel, read::<ResolveRoute>(call)?),
        CommandNumber::RESOLVE_IB_SERVICE => {
            service::resolve(kernel, &read::<ResolveIbService>(call)?)
        }
        CommandNumber::QUERY => query::query(kernel, &read::<Query>(call)?, call),
        CommandNumber::QUERY_ROUTE => query::route(kernel, &read::<Query>(call)?, call),
        CommandNumber::LISTEN => listen::listen(kernel, read::<Listen>(call)?),
        CommandNumber::ACCEPT => connect::accept(kernel, &read::<Accept>(call)?),
        CommandNumber::REJECT => connect::reject(kernel, &read::<Reject>(call)?),
        CommandNumber::NOTIFY => connect::notify(kernel, read::<Notify>(call)?),
        CommandNumber::INIT_QP_ATTR => qp_attr::init(kernel, &read::<InitQpAttr>(call)?, call),
        CommandNumber::LEAVE_MCAST => {
            multicast::leave(kernel, &read::<LeaveMulticast>(call)?, call)
        }
        CommandNumber::GET_EVENT => event::get(kernel, call),
        CommandNumber::WRITE_CM_EVENT => event::write(kernel, &read::<WriteCmEvent>(call)?),
        CommandNumber::SET_OPTION => option::set(kernel, &read::<SetOption>(call)?, call),
        CommandNumber::MIGRATE_ID => migrate::migrate(kernel, &read::<MigrateId>(call)?, call),
        // GET_OPTION, which has never had a function.
        _ => Err(Errno::ENOSYS),
    }
}

/// Finishes a command that blocks; `None` while it still does.
pub(crate) fn resume(
    kernel: &mut Kernel<'_>,
    blocked: Blocked,
    call: &mut Call<'_>,
) -> Option<Outcome> {
    match blocked.command {
        BlockedCommand::Connect => connect::resume(kernel, blocked.id),
        BlockedCommand::Disconnect => disconnect::resume(kernel, blocked.id),
        BlockedCommand::Destroy => id::resume_destroy(kernel, blocked.id, call),
    }
}

/// Gives up a command that blocks and cannot be waited for: it leaves the id as it was. Returns its outcome
/// instead if it has ended meanwhile.
pub(crate) fn abandon(
    kernel: &mut Kernel<'_>,
    blocked: Blocked,
    call: &mut Call<'_>,
) -> Option<Outcome> {
    let outcome = resume(kernel, blocked, call);
    if outcome.is_none() {
        match blocked.command {
            BlockedCommand::Connect => iwarp::abandon_handshake(kernel.state, blocked.id),
            BlockedCommand::Disconnect => {}
            BlockedCommand::Destroy => id::abandon_destroy(kernel, blocked.id),
        }
    }
    outcome
}

/// The request; `EFAULT` if it is shorter than what the kernel copies.
fn read<R: FromBytes>(call: &Call<'_>) -> Result<R, Errno> {
    R::read_from_bytes(call.request()).map_err(|_| Errno::EFAULT)
}

/// Writes as much of a response as fits; `ENOSPC` if that is less than the minimum.
fn respond<R: IntoBytes + Immutable + ?Sized>(
    call: &mut Call<'_>,
    response: &R,
    minimum: usize,
) -> Outcome {
    let buffer = call.response();
    if buffer.len() < minimum {
        return Err(Errno::ENOSPC);
    }
    for (to, byte) in buffer.iter_mut().zip(response.as_bytes()) {
        *to = *byte;
    }
    Ok(())
}
