//! Commands, as the functions of the kernel's `ucma.c` carry them out.

use nix::errno::Errno;
use rdmacm_abi::{
    Bind, CommandNumber, CreateId, DestroyId, Query, ResolveAddr, ResolveIbService, ResolveRoute,
    SetOption, WriteCmEvent,
};
use rdmacm_core::ucma::Call;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::clock::Clock;
use crate::machine::Machine;
use crate::subnet::Subnet;

mod bind;
mod event;
mod id;
mod option;
mod query;
mod resolve;
mod service;

/// What a command may look at and change.
pub(crate) struct Kernel<'world> {
    pub(crate) clock: &'world mut Clock,
    pub(crate) subnet: &'world Subnet,
    pub(crate) machine: &'world mut Machine,
    /// Which machine it is.
    pub(crate) index: usize,
    /// The file the command was written to.
    pub(crate) file: u64,
}

/// How a command ends.
pub(crate) type Outcome = Result<(), Errno>;

/// Carries out one command (`ucma_write`).
pub(crate) fn execute(kernel: &mut Kernel<'_>, call: &mut Call<'_>) -> Outcome {
    if call.number() >= kernel.machine.release.end_of_table() {
        return Err(Errno::EINVAL);
    }
    match call.number() {
        CommandNumber::CREATE_ID => id::create(kernel, &read::<CreateId>(call)?, call),
        CommandNumber::DESTROY_ID => id::destroy(kernel, &read::<DestroyId>(call)?, call),
        CommandNumber::BIND => bind::bind(kernel, &read::<Bind>(call)?),
        CommandNumber::RESOLVE_ADDR => resolve::address(kernel, &read::<ResolveAddr>(call)?),
        CommandNumber::RESOLVE_ROUTE => resolve::route(kernel, read::<ResolveRoute>(call)?),
        CommandNumber::RESOLVE_IB_SERVICE => {
            service::resolve(kernel, &read::<ResolveIbService>(call)?)
        }
        CommandNumber::QUERY => query::query(kernel, &read::<Query>(call)?, call),
        CommandNumber::GET_EVENT => event::get(kernel, call),
        CommandNumber::WRITE_CM_EVENT => event::write(kernel, &read::<WriteCmEvent>(call)?),
        CommandNumber::SET_OPTION => option::set(kernel, &read::<SetOption>(call)?, call),
        // No file here has a descriptor by which the kernel would find it.
        CommandNumber::MIGRATE_ID => Err(Errno::ENOENT),
        // As GET_OPTION, which has never had a function.
        _ => Err(Errno::ENOSYS),
    }
}

/// The request; `EFAULT` where there is less of it than the kernel copies.
fn read<R: FromBytes>(call: &Call<'_>) -> Result<R, Errno> {
    R::read_from_bytes(call.request()).map_err(|_| Errno::EFAULT)
}

/// Puts as much of an answer as there is room for; `ENOSPC` for less than the
/// least.
fn answer<R: IntoBytes + Immutable + ?Sized>(
    call: &mut Call<'_>,
    answer: &R,
    least: usize,
) -> Outcome {
    let room = call.response();
    if room.len() < least {
        return Err(Errno::ENOSPC);
    }
    for (place, byte) in room.iter_mut().zip(answer.as_bytes()) {
        *place = *byte;
    }
    Ok(())
}
