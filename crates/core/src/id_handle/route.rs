//! All that is known about an id's route.

use rdmacm_abi::{AddressFamily, Command, QueryRoute, QueryRouteResponse};

use super::IdHandle;
use super::query::{blank_route, ip_addresses, ip_gids, peer};
use crate::address::CmAddr;
use crate::address_abi::AddressAbi;
use crate::error::{Error, Result};
use crate::id_addresses::{Gids, IdRoute};
use crate::id_state::InFlight;
use crate::operation::Operation;
use crate::path::PathData;

impl IdHandle {
    /// The id's addresses, GIDs and, `with_path_records`, path records, as
    /// [`addresses`](Self::addresses), [`gids`](Self::gids) and
    /// [`path_records`](Self::path_records) return them one by one. Nothing is cached:
    /// for an id that is queried once. An id without a device has no GIDs, and one
    /// without a device or a peer no path records.
    ///
    /// For an id with IP addresses this is one query, and one more for path records of InfiniBand,
    /// and for the caller's on RoCE and iWARP. If the source is link-local, there is one more for the
    /// partition key, and one for path records. That of RoCE has LIDs of 0 if the source is not
    /// link-local, instead of bytes of a MAC address.
    ///
    /// # Errors
    /// Those of [`addresses`](Self::addresses).
    pub fn route(&self, with_path_records: bool) -> Result<IdRoute> {
        let id = self.enter()?;
        let mut answer = blank_route();
        id.query_route(Operation::QueryAddresses, &mut answer)?;
        let mut route = IdRoute {
            addresses: ip_addresses(&answer),
            gids: None,
            path_records: Vec::new(),
        };
        let addresses = &mut route.addresses;
        // `resolve_ib_service` gives an id with an IP source a native destination, for which this
        // answer has no room.
        let is_native = answer.destination.family() == AddressFamily::IB;
        let Some(source) = addresses.source.filter(|_| !is_native) else {
            return id.native_route(with_path_records);
        };
        if addresses.device.is_some() {
            let found = ip_gids(&answer);
            route.gids = Some(found);
            let is_roce = is_made_of(found, source);
            let any_family = id.address_abi() == AddressAbi::AnyFamily;
            if any_family {
                // As the query of the addresses returns it.
                addresses.pkey = if is_roce {
                    0
                } else if source.is_link_local() {
                    id.query_addresses()?.pkey
                } else {
                    addresses.pkey
                };
            }
            if with_path_records && addresses.destination.is_some() {
                // `ucma_copy_iw_route` counts none, whatever the caller has set.
                let has_more = answer.path_count > 0 || id.has_given_path();
                let is_complete = is_roce && !id.has_given_path();
                route.path_records = if is_complete || !any_family {
                    paths(&answer, any_family)?
                } else if has_more {
                    id.query_paths()?.to_vec()
                } else {
                    Vec::new()
                };
            }
        }
        Ok(route)
    }
}

impl InFlight {
    /// The route of an id that is unbound, or has native InfiniBand addresses.
    fn native_route(&self, with_path_records: bool) -> Result<IdRoute> {
        let addresses = self.query_addresses()?;
        let mut route = IdRoute {
            addresses,
            gids: None,
            path_records: Vec::new(),
        };
        if addresses.device.is_none() {
            return Ok(route);
        }
        if with_path_records && addresses.destination.is_some() {
            route.path_records = self.query_paths()?.to_vec();
        }
        // A path is one between these GIDs.
        route.gids = Some(match route.path_records.first() {
            Some(path) => Gids {
                source: path.record.sgid,
                destination: peer(path.record.dgid),
            },
            None => self.query_gids()?,
        });
        Ok(route)
    }
}

/// `::ffff:0.0.0.0`
const V4_MAPPED: u128 = 0xffff_0000_0000;

/// Whether the source's GID is made of its IP address, as on RoCE: its path records have
/// nothing that a response to `QUERY_ROUTE` lacks. A link-local address may be the GID of
/// an InfiniBand port.
fn is_made_of(gids: Gids, source: CmAddr) -> bool {
    let gid = u128::from_be_bytes(gids.source.0);
    match source {
        CmAddr::V4(v4) => gid == V4_MAPPED | u128::from(v4.ip().to_bits()),
        CmAddr::V6(v6) => gid == v6.ip().to_bits() && !source.is_link_local(),
        CmAddr::Ib(_) => false,
    }
}

/// The path records in a response, with the flags that a query of path records returns for
/// each if the kernel has that query.
fn paths(answer: &QueryRouteResponse, with_flags: bool) -> Result<Vec<PathData>> {
    let count = usize::try_from(answer.path_count).unwrap_or(usize::MAX);
    let Some(records) = answer.paths.get(..count) else {
        let problem = "it counts more paths than an id has";
        let operation = Operation::QueryPathRecords;
        return Err(Error::answer(operation, QueryRoute::NUMBER, problem));
    };
    let mut paths = Vec::with_capacity(count);
    for record in records {
        let mut path = PathData::from(record);
        if with_flags {
            path.flags = PathData::USABLE;
        }
        paths.push(path);
    }
    Ok(paths)
}
