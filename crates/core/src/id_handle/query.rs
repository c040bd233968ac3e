//! Queries about an id.

use std::net::Ipv4Addr;

use rdmacm_abi::{
    AddressFamily, Command, QueryAddr, QueryAddrResponse, QueryGid, QueryPath, QueryPathResponse,
    QueryRoute, QueryRouteResponse, SockaddrStorage,
};
use zerocopy::FromZeros;

use super::IdHandle;
use crate::address::{CmAddr, from_ip_slot, from_storage};
use crate::error::{Error, Result};
use crate::gid::Gid;
use crate::guid::Guid;
use crate::id_addresses::{Addresses, Gids};
use crate::id_state::InFlight;
use crate::operation::Operation;
use crate::path::{PathData, PathRecords};
use crate::rdma_devices::{DeviceId, DeviceLookup, RdmaDevice};
use crate::ucma::Attachment;

/// The device index in a response before the query: kernels before 5.8 do not write
/// one.
const NO_INDEX: u32 = u32::MAX;

impl IdHandle {
    /// The id's addresses, device, port and partition: one query, whose answer is cached
    /// until a command or an event of the id may have changed it. Source: `rdma_get_local_addr(3)`
    /// and related functions, the kernel's `ucma_query_addr`.
    ///
    /// # Errors
    /// [`Error::Command`] if the kernel refuses, [`Error::Answer`] if its answer is
    /// invalid.
    pub fn addresses(&self) -> Result<Addresses> {
        let id = self.enter()?;
        id.cache().get_or_query(
            |cache| cache.addresses,
            || id.query_addresses(),
            |cache, addresses| cache.addresses = Some(addresses),
        )
    }

    /// The RDMA device the id is bound to, see
    /// [`EventChannel::look_up`](crate::EventChannel::look_up); `None` without one. The
    /// lookup is not cached.
    ///
    /// # Errors
    /// Those of [`addresses`](Self::addresses).
    #[doc(alias = "verbs")]
    pub fn rdma_device(&self) -> Result<Option<RdmaDevice>> {
        let device = self.addresses()?.device;
        let channel = self.enter()?.state().channel();
        Ok(device.and_then(|id| channel.devices().look_up(id)))
    }

    /// Looks up devices like [`rdma_device`](Self::rdma_device), also after the id is gone.
    /// See [`EventChannel::device_lookup`](crate::EventChannel::device_lookup).
    ///
    /// # Errors
    /// [`Error::IdDestroyed`] if the id was destroyed.
    pub fn device_lookup(&self) -> Result<DeviceLookup> {
        Ok(self.enter()?.state().channel().device_lookup())
    }

    /// The local address; `None` before the id is bound or resolved. After a refused
    /// [`bind`](Self::bind) it is mostly the refused address.
    ///
    /// # Errors
    /// Those of [`addresses`](Self::addresses).
    #[doc(alias = "rdma_get_local_addr")]
    pub fn local_addr(&self) -> Result<Option<CmAddr>> {
        Ok(self.addresses()?.source)
    }

    /// The peer's address; `None` if there is no peer.
    ///
    /// # Errors
    /// Those of [`addresses`](Self::addresses).
    #[doc(alias = "rdma_get_peer_addr")]
    pub fn peer_addr(&self) -> Result<Option<CmAddr>> {
        Ok(self.addresses()?.destination)
    }

    /// The local port, host order; 0 before the id is bound or resolved.
    ///
    /// # Errors
    /// Those of [`addresses`](Self::addresses).
    #[doc(alias = "rdma_get_src_port")]
    pub fn local_port(&self) -> Result<u16> {
        Ok(self.local_addr()?.map_or(0, |address| address.port()))
    }

    /// The peer's port, host order; 0 if there is no peer.
    ///
    /// # Errors
    /// Those of [`addresses`](Self::addresses).
    #[doc(alias = "rdma_get_dst_port")]
    pub fn peer_port(&self) -> Result<u16> {
        Ok(self.peer_addr()?.map_or(0, |address| address.port()))
    }

    /// The GIDs of the local port and the peer's port, cached like the addresses;
    /// [`Gid::UNSPECIFIED`](crate::Gid::UNSPECIFIED) for an id without a device. Source: the
    /// kernel's `ucma_query_gid`.
    ///
    /// # Errors
    /// Those of [`addresses`](Self::addresses).
    #[doc(alias = "rdma_ib_addr")]
    #[doc(alias = "ibaddr")]
    pub fn gids(&self) -> Result<Gids> {
        let id = self.enter()?;
        id.cache().get_or_query(
            |cache| cache.gids,
            || id.query_gids(),
            |cache, gids| cache.gids = Some(gids),
        )
    }

    /// The path records, after the route is resolved; cached like the addresses. None on
    /// iWARP. Source: the kernel's `ucma_query_path`.
    ///
    /// # Errors
    /// Those of [`addresses`](Self::addresses).
    #[doc(alias = "path_rec")]
    #[doc(alias = "num_paths")]
    pub fn path_records(&self) -> Result<PathRecords> {
        let id = self.enter()?;
        id.cache().get_or_query(
            |cache| cache.paths,
            || id.query_paths(),
            |cache, paths| cache.paths = Some(paths),
        )
    }
}

impl InFlight {
    pub(super) fn query_addresses(&self) -> Result<Addresses> {
        let operation = Operation::QueryAddresses;
        self.with_address_abi(
            || {
                let mut answer = blank_addresses();
                let request = QueryAddr::new(self.kernel_id());
                self.send(|| operation, request, &mut answer, Attachment::None)?;
                Ok(Addresses {
                    source: slot(operation, &answer.source, answer.source_size)?,
                    destination: slot(operation, &answer.destination, answer.destination_size)?
                        .filter(is_peer),
                    device: device(
                        answer.port_number,
                        answer.node_guid.get(),
                        answer.device_index,
                    ),
                    port_number: answer.port_number,
                    pkey: answer.pkey.get(),
                })
            },
            || {
                let mut answer = blank_route();
                self.query_route(operation, &mut answer)?;
                Ok(ip_addresses(&answer))
            },
        )
    }

    pub(super) fn query_gids(&self) -> Result<Gids> {
        let operation = Operation::QueryGids;
        self.with_address_abi(
            || {
                let mut answer = blank_addresses();
                let request = QueryGid::new(self.kernel_id());
                self.send(|| operation, request, &mut answer, Attachment::None)?;
                Ok(Gids {
                    source: gid(operation, &answer.source)?,
                    destination: peer(gid(operation, &answer.destination)?),
                })
            },
            || {
                let mut answer = blank_route();
                self.query_route(operation, &mut answer)?;
                Ok(ip_gids(&answer))
            },
        )
    }

    pub(super) fn query_paths(&self) -> Result<PathRecords> {
        let operation = Operation::QueryPathRecords;
        let (command, paths) = self.with_address_abi(
            || {
                // Space for one record more: some kernels leave out a record for which
                // the remaining space is exactly enough.
                type Ask = QueryPath<{ PathRecords::MOST + 1 }>;
                let mut answer = QueryPathResponse::new_zeroed();
                let request = Ask::new(self.kernel_id());
                self.send(|| operation, request, &mut answer, Attachment::None)?;
                let records = answer.paths().iter().map(PathData::from);
                Ok((
                    Ask::NUMBER,
                    PathRecords::new(records, answer.path_count.get()),
                ))
            },
            || {
                let mut answer = blank_route();
                self.query_route(operation, &mut answer)?;
                let records = answer.paths.iter().map(PathData::from);
                Ok((
                    QueryRoute::NUMBER,
                    PathRecords::new(records, answer.path_count),
                ))
            },
        )?;
        paths
            .ok_or_else(|| Error::answer(operation, command, "it counts more paths than an id has"))
    }

    /// Fills in a [blank](blank_route) answer.
    pub(super) fn query_route(
        &self,
        operation: Operation,
        answer: &mut QueryRouteResponse,
    ) -> Result<()> {
        let request = QueryRoute::new(self.kernel_id());
        self.send(|| operation, request, answer, Attachment::None)
    }
}

/// The addresses in a response to `QUERY_ROUTE`.
pub(super) fn ip_addresses(answer: &QueryRouteResponse) -> Addresses {
    let [path, _] = &answer.paths;
    Addresses {
        source: from_ip_slot(&answer.source),
        destination: from_ip_slot(&answer.destination).filter(is_peer),
        device: device(
            answer.port_number,
            answer.node_guid.get(),
            answer.device_index,
        ),
        port_number: answer.port_number,
        pkey: path.pkey.get(),
    }
}

/// The GIDs in a response to `QUERY_ROUTE`. The first record has them even if there is no
/// path.
pub(super) fn ip_gids(answer: &QueryRouteResponse) -> Gids {
    let [path, _] = &answer.paths;
    Gids {
        source: Gid(path.source_gid),
        destination: peer(Gid(path.destination_gid)),
    }
}

pub(super) fn blank_route() -> QueryRouteResponse {
    let mut answer = QueryRouteResponse::new_zeroed();
    answer.device_index = NO_INDEX;
    answer
}

fn blank_addresses() -> QueryAddrResponse {
    let mut answer = QueryAddrResponse::new_zeroed();
    answer.device_index = NO_INDEX;
    answer
}

/// The address in a slot, of `size` bytes by the kernel's answer.
fn slot(operation: Operation, slot: &SockaddrStorage, size: u16) -> Result<Option<CmAddr>> {
    if size == 0 {
        return Ok(None);
    }
    from_storage(slot)
        .filter(|_| size == slot.size())
        .map(Some)
        .ok_or_else(|| {
            Error::answer(
                operation,
                QueryAddr::NUMBER,
                "an address of no known family",
            )
        })
}

/// The kernel returns the wildcard of the source's family for an id without a peer.
fn is_peer(address: &CmAddr) -> bool {
    !address.is_unspecified()
}

fn gid(operation: Operation, slot: &SockaddrStorage) -> Result<Gid> {
    match slot.as_ib() {
        Some(address) => Ok(Gid(address.addr)),
        None if slot.family() == AddressFamily::new(0) => Ok(Gid::UNSPECIFIED),
        None => Err(Error::answer(
            operation,
            QueryGid::NUMBER,
            "a GID that is no InfiniBand address",
        )),
    }
}

/// The kernel returns the GID of the wildcard address for an id without a peer.
pub(super) fn peer(gid: Gid) -> Option<Gid> {
    let no_peer = [
        Gid::UNSPECIFIED,
        Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().into(),
    ];
    (!no_peer.contains(&gid)).then_some(gid)
}

/// Ports are numbered from 1; the kernel returns 0 without a device. (A GUID of 0 is
/// valid: virtual functions may have it.)
fn device(port_number: u8, guid: u64, index: u32) -> Option<DeviceId> {
    (port_number != 0).then_some(DeviceId {
        index: (index != NO_INDEX).then_some(index),
        guid: Guid(guid),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_needs_a_port_and_may_lack_an_index() {
        assert_eq!(device(0, 7, 3), None);
        assert_eq!(device(1, 7, NO_INDEX).unwrap().index, None);
        assert_eq!(device(1, 7, 0).unwrap().index, Some(0));
        assert!(device(1, 0, 0).is_some());
    }

    #[test]
    fn a_slot_whose_size_does_not_fit_is_no_address() {
        let operation = Operation::QueryAddresses;
        let v4 = SockaddrStorage::from(std::net::SocketAddr::from(([10, 0, 0, 1], 7)));
        assert!(slot(operation, &v4, 16).unwrap().is_some());
        assert_eq!(slot(operation, &v4, 0), Ok(None));
        assert!(slot(operation, &v4, 28).is_err());
        assert!(slot(operation, &v4, u16::MAX).is_err());
        assert!(slot(operation, &SockaddrStorage::ZERO, 16).is_err());
    }
}
