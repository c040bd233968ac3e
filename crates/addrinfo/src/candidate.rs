//! The addresses to ask the kernel about.

use std::net::SocketAddr;
use std::time::Instant;

use rdmacm_core::{CmAddr, Family, IbAddr};

use crate::error::{Error, NameError, Result};
use crate::hints::Hints;
use crate::kind::Kind;
use crate::names::{Lookups, Named, Names};

/// An address to ask the kernel about.
pub(crate) struct Candidate {
    pub(crate) address: CmAddr,
    /// Where to start from, if it is not the caller's to say.
    pub(crate) source: Option<CmAddr>,
    pub(crate) canonical_name: Option<String>,
}

impl Candidate {
    /// An address a name has, of the family asked for.
    fn of(named: Named, hints: &Hints, kind: Kind) -> Self {
        let address: CmAddr = match (named.address, hints.family) {
            (SocketAddr::V6(address), Some(Family::Ib)) => {
                IbAddr::from_v6(address, kind.port_space).into()
            }
            (address, _) => address.into(),
        };
        Self {
            canonical_name: named.canonical_name,
            ..address.into()
        }
    }
}

impl From<CmAddr> for Candidate {
    fn from(address: CmAddr) -> Self {
        Self {
            address,
            source: None,
            canonical_name: None,
        }
    }
}

/// Every address of the node, or the one of the hints where there is no node.
pub(crate) fn candidates(
    node: Option<&str>,
    service: Option<&str>,
    hints: &Hints,
    kind: Kind,
    lookups: &Lookups,
    until: Option<Instant>,
) -> Result<Vec<Candidate>> {
    let names = Names {
        node: node.map(str::to_owned),
        service: service.map(str::to_owned),
        family: hints.family.map(ip_family),
        datagram: kind.is_datagram(),
        flags: hints.flags,
        canonical_name: hints.canonical_name,
    };
    match (node, hints.stand_in()) {
        (None, None) if service.is_none() => Err(Error::NothingToResolve),
        (Some(_), Some(_)) => Err(Error::Hints("a node and an address to stand in its place")),
        (None, Some(address)) => {
            let port = port_of_service(address, names, lookups, until)?;
            Ok(vec![at_port(address, port, kind).into()])
        }
        // Names have no InfiniBand addresses.
        (Some(_), None) if hints.family == Some(Family::Ib) && !hints.is_numeric_host() => {
            Err(NameError::Family.into())
        }
        (_, None) => {
            let found = names.resolve(lookups, until)?;
            let candidate = |named| Candidate::of(named, hints, kind);
            Ok(found.into_iter().map(candidate).collect())
        }
    }
}

/// The port of the service; `None` without a service.
fn port_of_service(
    address: CmAddr,
    mut names: Names,
    lookups: &Lookups,
    until: Option<Instant>,
) -> Result<Option<u16>> {
    if names.service.is_none() {
        return Ok(None);
    }
    names.family = Some(ip_family(address.family()));
    let found = names.resolve(lookups, until)?;
    Ok(found.first().map(|first| first.address.port()))
}

/// The address of the hints with the service's port if there is one, which on
/// InfiniBand is one of the port space.
fn at_port(address: CmAddr, port: Option<u16>, kind: Kind) -> CmAddr {
    match (address, port) {
        (address, None) => address,
        (CmAddr::Ib(address), Some(port)) => address.with_ip_service(kind.port_space, port).into(),
        (address, Some(port)) => address.with_port(port),
    }
}

/// GIDs are written as IPv6 addresses.
fn ip_family(family: Family) -> Family {
    match family {
        Family::Ib => Family::V6,
        family => family,
    }
}
