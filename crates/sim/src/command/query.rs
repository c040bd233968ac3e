//! Queries of what the kernel stores of an id.

use std::mem::offset_of;

use nix::errno::Errno;
use rdmacm_abi::{
    Be16, Be64, PathRecord, PathRecordData, Query, QueryAddrResponse, QueryOption,
    QueryRouteResponse, Reserved, SockaddrStorage, UserPathRecord,
};
use rdmacm_core::ucma::Call;
use rdmacm_core::{Gid, Transport};
use zerocopy::{FromZeros, IntoBytes};

use super::{Kernel, Outcome, respond};
use crate::address::Address;
use crate::device::ip_gid;
use crate::host_state::HostState;
use crate::id::Id;

/// The size of the response before it had the device's index.
const MINIMUM: usize = offset_of!(QueryAddrResponse, device_index);

/// Records of either kind follow their number and four reserved bytes.
const COUNT: usize = size_of::<(u32, Reserved<4>)>();

/// `ucma_query`.
pub(super) fn query(kernel: &mut Kernel<'_>, request: &Query, call: &mut Call<'_>) -> Outcome {
    kernel.find(request.id)?;
    let host = kernel.host()?;
    let id = host.ids.get(&request.id).ok_or(Errno::ENOENT)?;
    match request.option {
        QueryOption::ADDR => respond(call, &addresses(host, id), MINIMUM),
        QueryOption::GID => respond(call, &gids(host, id), MINIMUM),
        QueryOption::PATH => paths(id, call),
        QueryOption::IB_SERVICE if host.version.supports_services() => services(id, call),
        _ => Err(Errno::ENOSYS),
    }
}

/// `ucma_query_route`.
pub(super) fn route(kernel: &mut Kernel<'_>, request: &Query, call: &mut Call<'_>) -> Outcome {
    kernel.find(request.id)?;
    let host = kernel.host()?;
    let id = host.ids.get(&request.id).ok_or(Errno::ENOENT)?;
    let device = device_response(host, id);
    let mut response = QueryRouteResponse::new_zeroed();
    response.source = Address::write_ip(id.source);
    response.destination = Address::write_ip(id.destination);
    response.node_guid = device.node_guid;
    response.device_index = device.device_index;
    response.port_number = device.port_number;
    if id.attached.is_some() {
        let (count, path) = user_path(host, id);
        response.path_count = count;
        if let Some(first) = response.paths.first_mut() {
            *first = path;
        }
    }
    let minimum = offset_of!(QueryRouteResponse, device_index);
    respond(call, &response, minimum)
}

/// The number of paths and the first of them. Without any, it has the GIDs only
/// (`ucma_copy_ib_route`, `ucma_copy_iboe_route`, `ucma_copy_iw_route`).
fn user_path(host: &HostState, id: &Id) -> (u32, UserPathRecord) {
    if let Some(path) = &id.path {
        return (1, unpacked(path));
    }
    let mut path = UserPathRecord::new_zeroed();
    let (source, destination) = device_gids(host, id);
    (path.source_gid, path.destination_gid) = (source.0, destination.0);
    path.pkey = match host.transport(id.attached) {
        Some(Transport::InfiniBand) => Be16::new(id.pkey),
        Some(Transport::RoCE) => Be16::new(0xffff),
        _ => Be16::new(0),
    };
    (0, path)
}

/// `ib_copy_path_rec_to_user`.
fn unpacked(path: &PathRecord) -> UserPathRecord {
    let selector = |value: u8| value >> 6;
    let mut record = UserPathRecord::new_zeroed();
    record.destination_gid = path.destination_gid;
    record.source_gid = path.source_gid;
    record.destination_lid = Be16::new(path.destination_lid.get());
    record.source_lid = Be16::new(path.source_lid.get());
    record.flow_label = rdmacm_abi::Be32::new(path.flow_label());
    record.reversible = path.is_reversible().into();
    record.mtu = path.mtu().into();
    record.pkey = Be16::new(path.pkey.get());
    record.hop_limit = path.hop_limit();
    record.traffic_class = path.traffic_class;
    record.path_count = path.path_count();
    record.service_level = path.service_level();
    record.mtu_selector = selector(path.mtu_selector_mtu);
    record.rate_selector = selector(path.rate_selector_rate);
    record.rate = path.rate();
    record.packet_life_time_selector = selector(path.life_selector_packet_life_time);
    record.packet_life_time = path.packet_life_time();
    record.preference = path.preference;
    record
}

/// `ucma_query_addr`.
fn addresses(host: &HostState, id: &Id) -> QueryAddrResponse {
    let mut response = device_response(host, id);
    (response.source, response.source_size) = Address::write(id.source);
    (response.destination, response.destination_size) = Address::write(id.destination);
    response
}

/// `ucma_query_gid`.
fn gids(host: &HostState, id: &Id) -> QueryAddrResponse {
    let mut response = device_response(host, id);
    let pkey = response.pkey.get();
    let gid = |address: Option<Address>, gid: Gid| -> (SockaddrStorage, u16) {
        let infiniband = match address {
            Some(Address::Ib(address)) => address,
            other => Address::infiniband(gid, pkey, id.service_id(other)),
        };
        Address::write(Some(Address::Ib(infiniband)))
    };
    let (source, destination) = device_gids(host, id);
    (response.source, response.source_size) = gid(id.source, source);
    (response.destination, response.destination_size) = gid(id.destination, destination);
    response
}

/// The GIDs of both ends. Those of RoCE are the addresses (`rdma_read_gids`).
fn device_gids(host: &HostState, id: &Id) -> (Gid, Gid) {
    match host.transport(id.attached) {
        None => (Gid::UNSPECIFIED, Gid::UNSPECIFIED),
        Some(Transport::RoCE) => {
            let gid = |address: Option<_>| address.map_or(Gid::UNSPECIFIED, ip_gid);
            (gid(id.source_ip()), gid(id.destination_ip()))
        }
        Some(_) => (id.source_gid, id.destination_gid),
    }
}

/// `ucma_query_device_addr`.
fn device_response(host: &HostState, id: &Id) -> QueryAddrResponse {
    let mut response = QueryAddrResponse::new_zeroed();
    let Some(attached) = id.attached else {
        return response;
    };
    let device = host.devices.get(attached.device);
    response.node_guid = Be64::new(device.map_or(0, |device| device.guid.0));
    response.device_index = u32::try_from(attached.device).unwrap_or(u32::MAX);
    response.port_number = attached.port;
    response.pkey = Be16::new(id.pkey);
    response
}

/// `ucma_query_path`: the number of paths, and those that fit.
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

/// `ucma_query_ib_service`: the number of records, and those that fit.
/// If none fits, it succeeds and writes nothing.
fn services(id: &Id, call: &mut Call<'_>) -> Outcome {
    let size_left = call.response().len();
    if size_left < COUNT {
        return Err(Errno::ENOSPC);
    }
    let services = id.services.as_ref().ok_or(Errno::ENODATA)?;
    let size = size_of::<rdmacm_abi::ServiceRecord>();
    if size_left < COUNT + size {
        return Ok(());
    }
    let count = u32::try_from(services.len()).unwrap_or(u32::MAX);
    records(call, count, services.as_slice().as_bytes(), size)
}

/// The number of records and as many whole ones as fit.
fn records(call: &mut Call<'_>, count: u32, records: &[u8], size: usize) -> Outcome {
    let size_left = call.response().len().checked_sub(COUNT);
    let size_left = size_left.ok_or(Errno::ENOSPC)?;
    let whole = size_left - size_left % size;
    let mut bytes = Vec::with_capacity(COUNT + records.len());
    bytes.extend(count.to_ne_bytes());
    bytes.extend([0; COUNT - size_of::<u32>()]);
    bytes.extend(records.iter().take(whole));
    respond(call, bytes.as_slice(), COUNT)
}
