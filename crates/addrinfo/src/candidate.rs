//! The addresses to ask the kernel about.

use std::time::Instant;

use rdmacm_core::CmAddr;

use crate::error::{Error, Result};
use crate::hints::Hints;
use crate::kind::Kind;
use crate::names::{Lookups, Named, Names};

/// An address to ask the kernel about.
pub(crate) struct Candidate {
    pub(crate) address: CmAddr,
    pub(crate) canonical_name: Option<String>,
}

impl From<Named> for Candidate {
    fn from(named: Named) -> Self {
        Self {
            address: named.address.into(),
            canonical_name: named.canonical_name,
        }
    }
}

impl From<CmAddr> for Candidate {
    fn from(address: CmAddr) -> Self {
        Self {
            address,
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
        family: hints.family,
        datagram: kind.is_datagram(),
        flags: hints.flags,
        canonical_name: hints.canonical_name,
    };
    match (node, hints.stand_in()) {
        (None, None) if service.is_none() => Err(Error::NothingToResolve),
        (Some(_), Some(_)) => Err(Error::Hints("a node and an address to stand in its place")),
        (None, Some(address)) => Ok(vec![stand_in(address, names, lookups, until)?.into()]),
        (_, None) => {
            let found = names.resolve(lookups, until)?;
            Ok(found.into_iter().map(Candidate::from).collect())
        }
    }
}

/// The address of the hints, with the service's port if there is a service.
fn stand_in(
    address: CmAddr,
    mut names: Names,
    lookups: &Lookups,
    until: Option<Instant>,
) -> Result<CmAddr> {
    if names.service.is_none() {
        return Ok(address);
    }
    names.family = Some(address.family());
    let found = names.resolve(lookups, until)?;
    Ok(found
        .first()
        .map_or(address, |first| address.with_port(first.address.port())))
}
