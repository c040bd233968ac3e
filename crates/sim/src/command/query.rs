//! What the kernel tells of an id.

use std::mem::offset_of;

use nix::errno::Errno;
use rdmacm_abi::{
    Be16, Be64, PathRecordData, Query, QueryAddrResponse, QueryOption, Reserved, SockaddrStorage,
};
use rdmacm_core::Gid;
use rdmacm_core::ucma::Call;
use zerocopy::{FromZeros, IntoBytes};

use super::{Kernel, Outcome, answer};
use crate::address::Address;
use crate::id::Id;
use crate::machine::Machine;

/// The kernel asks for no more room than programs had before the device's index
/// was told.
const LEAST: usize = offset_of!(QueryAddrResponse, device_index);

/// Records of either kind stand behind their number and four bytes of nothing.
const COUNT: usize = size_of::<(u32, Reserved<4>)>();

/// `ucma_query`.
pub(super) fn query(kernel: &mut Kernel<'_>, request: &Query, call: &mut Call<'_>) -> Outcome {
    let machine = &mut *kernel.machine;
    machine.find(kernel.file, request.id)?;
    let knows_services = machine.release.knows_services();
    let id = machine.ids.get(&request.id).ok_or(Errno::ENOENT)?;
    match request.option {
        QueryOption::ADDR => answer(call, &addresses(machine, id), LEAST),
        QueryOption::GID => answer(call, &gids(machine, id), LEAST),
        QueryOption::PATH => paths(id, call),
        QueryOption::IB_SERVICE if knows_services => services(id, call),
        _ => Err(Errno::ENOSYS),
    }
}

/// `ucma_query_addr`.
fn addresses(machine: &Machine, id: &Id) -> QueryAddrResponse {
    let mut answer = of_device(machine, id);
    (answer.source, answer.source_size) = Address::write(id.source);
    (answer.destination, answer.destination_size) = Address::write(id.destination);
    answer
}

/// `ucma_query_gid`.
fn gids(machine: &Machine, id: &Id) -> QueryAddrResponse {
    let mut answer = of_device(machine, id);
    let pkey = answer.pkey.get();
    let gid = |address: Option<Address>, gid: Gid| -> (SockaddrStorage, u16) {
        let infiniband = match address {
            Some(Address::Ib(address)) => address,
            other => Address::infiniband(gid, pkey, id.service_id(other)),
        };
        Address::write(Some(Address::Ib(infiniband)))
    };
    (answer.source, answer.source_size) = gid(id.source, id.source_gid);
    (answer.destination, answer.destination_size) = gid(id.destination, id.destination_gid);
    answer
}

/// `ucma_query_device_addr`.
fn of_device(machine: &Machine, id: &Id) -> QueryAddrResponse {
    let mut answer = QueryAddrResponse::new_zeroed();
    let Some(attached) = id.attached else {
        return answer;
    };
    let adapter = machine.adapters.get(attached.adapter);
    answer.node_guid = Be64::new(adapter.map_or(0, |adapter| adapter.guid.0));
    answer.device_index = u32::try_from(attached.adapter).unwrap_or(u32::MAX);
    answer.port_number = attached.port;
    answer.pkey = Be16::new(id.pkey);
    answer
}

/// `ucma_query_path`: the number of paths, and those there is room for.
fn paths(id: &Id, call: &mut Call<'_>) -> Outcome {
    let path = id
        .path
        .map(|path| PathRecordData::new(PathRecordData::USABLE, path));
    let count = u32::from(path.is_some());
    let path = path.as_ref().map(IntoBytes::as_bytes);
    records(
        call,
        count,
        path.unwrap_or_default(),
        size_of::<PathRecordData>(),
    )
}

/// `ucma_query_ib_service`: the number of records, and those there is room for.
/// Without room for any it says yes and writes nothing.
fn services(id: &Id, call: &mut Call<'_>) -> Outcome {
    let room = call.response().len();
    if room < COUNT {
        return Err(Errno::ENOSPC);
    }
    let services = id.services.as_ref().ok_or(Errno::ENODATA)?;
    let size = size_of::<rdmacm_abi::ServiceRecord>();
    if room < COUNT + size {
        return Ok(());
    }
    let count = u32::try_from(services.len()).unwrap_or(u32::MAX);
    records(call, count, services.as_slice().as_bytes(), size)
}

/// The number of records and as many whole ones as there is room for.
fn records(call: &mut Call<'_>, count: u32, records: &[u8], size: usize) -> Outcome {
    let room = call.response().len().checked_sub(COUNT);
    let room = room.ok_or(Errno::ENOSPC)?;
    let whole = room - room % size;
    let mut bytes = Vec::with_capacity(COUNT + records.len());
    bytes.extend(count.to_ne_bytes());
    bytes.extend([0; COUNT - size_of::<u32>()]);
    bytes.extend(records.iter().take(whole));
    answer(call, bytes.as_slice(), COUNT)
}
