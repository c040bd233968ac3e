//! Joining and leaving multicast groups.

use nix::errno::Errno;
use rdmacm_abi::{
    CreateIdResponse, DestroyIdResponse, JoinFlags, JoinIpMulticast, JoinMulticast, LeaveMulticast,
};
use rdmacm_core::ucma::Call;

use super::{CommandError, Kernel, Outcome, respond};
use crate::address::Address;
use crate::multicast;

/// `ucma_join_multicast`.
pub(super) fn join(
    kernel: &mut Kernel<'_>,
    request: &JoinMulticast,
    call: &mut Call<'_>,
) -> Result<(), CommandError> {
    let address = Address::read(&request.addr, request.addr_size)?;
    let known = [JoinFlags::FULL_MEMBER, JoinFlags::SEND_ONLY_FULL_MEMBER];
    if !known.contains(&request.join_flags) {
        return Err(Errno::EINVAL.into());
    }
    process(kernel, (request.id, request.uid), address, call)
}

/// `ucma_join_ip_multicast`.
pub(super) fn join_ip(
    kernel: &mut Kernel<'_>,
    request: &JoinIpMulticast,
    call: &mut Call<'_>,
) -> Result<(), CommandError> {
    let address = Address::read_ip(&request.addr).ok_or(Errno::EINVAL)?;
    process(kernel, (request.id, request.uid), address, call)
}

/// `ucma_process_join`.
fn process(
    kernel: &mut Kernel<'_>,
    (id, uid): (u32, u64),
    address: Address,
    call: &mut Call<'_>,
) -> Result<(), CommandError> {
    let minimum = size_of::<CreateIdResponse>();
    if call.response().len() < minimum {
        return Err(Errno::ENOSPC.into());
    }
    let key = kernel.attached_key(id)?;
    let number = multicast::join(kernel.state, key, uid, address)?;
    Ok(respond(call, &CreateIdResponse { id: number }, minimum)?)
}

/// `ucma_leave_multicast`.
pub(super) fn leave(
    kernel: &mut Kernel<'_>,
    request: &LeaveMulticast,
    call: &mut Call<'_>,
) -> Outcome {
    let minimum = size_of::<DestroyIdResponse>();
    if call.response().len() < minimum {
        return Err(Errno::ENOSPC);
    }
    let file = kernel.file;
    let host = kernel.host()?;
    let group = host.groups.get(&request.id).ok_or(Errno::ENOENT)?;
    host.find(file, group.id)?;
    let group = host.groups.remove(&request.id).ok_or(Errno::ENOENT)?;
    if let Some(file) = host.files.get_mut(&file) {
        file.remove(|event| event.group == Some(request.id));
    }
    let events_reported = group.events_reported;
    respond(call, &DestroyIdResponse { events_reported }, minimum)
}
