//! The addresses to ask the kernel about.

use rdmacm_core::CmAddr;

use crate::error::{Error, NameError, Result};
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;
use crate::kind::Kind;
use crate::local::Local;
use crate::names::{Knowledge, Named, Names};

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

/// Refuses what cannot be asked.
pub(crate) fn check(node: Option<&str>, service: Option<&str>, hints: &Hints) -> Result<()> {
    hints.check()?;
    Kind::new(hints.port_space, hints.qp_type)?;
    if [node, service]
        .into_iter()
        .flatten()
        .any(|text| text.contains('\0'))
    {
        return Err(Error::NulInText);
    }
    match (node, hints.stand_in()) {
        (None, None) if service.is_none() => Err(Error::NothingToResolve),
        (Some(_), Some(_)) => Err(Error::Hints("a node and an address to stand in its place")),
        _ => Ok(()),
    }
}

/// Every address of the node, or the one of the hints where there is no node.
pub(crate) fn candidates(
    node: Option<&str>,
    service: Option<&str>,
    hints: &Hints,
    kind: Kind,
    knowledge: Knowledge<'_>,
) -> Result<Vec<Candidate>> {
    if let Some(address) = hints.stand_in() {
        let address = match service {
            None => address,
            Some(_) => address.with_port(service_port(service, kind, knowledge)?),
        };
        return Ok(vec![address.into()]);
    }
    let names = Names {
        node: node.map(str::to_owned),
        service: service.map(str::to_owned),
        family: hints.family,
        datagram: kind.is_datagram(),
        flags: hints.flags,
        canonical_name: hints.canonical_name,
    };
    let found = names.resolve(knowledge)?;
    Ok(found.into_iter().map(Candidate::from).collect())
}

/// The addresses of a thing of this machine, with the service's port.
pub(crate) fn local_candidates(
    local: &Local,
    service: Option<&str>,
    hints: &Hints,
    kind: Kind,
    knowledge: Knowledge<'_>,
) -> Result<Vec<Candidate>> {
    let port = service_port(service, kind, knowledge)?;
    let mut addresses = local.addresses()?;
    addresses.retain(|one| hints.family.is_none_or(|family| family == one.family()));
    if addresses.is_empty() {
        return Err(NameError::AddressFamily.into());
    }
    let addresses = addresses.into_iter().map(|one| one.with_port(port));
    Ok(addresses.map(Candidate::from).collect())
}

/// The port of a service; 0 without one.
fn service_port(service: Option<&str>, kind: Kind, knowledge: Knowledge<'_>) -> Result<u16> {
    let Some(service) = service else {
        return Ok(0);
    };
    let names = Names {
        node: None,
        service: Some(service.to_owned()),
        family: None,
        datagram: kind.is_datagram(),
        flags: AddrInfoFlags::empty(),
        canonical_name: false,
    };
    let found = names.resolve(knowledge)?;
    Ok(found.first().map_or(0, |first| first.address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_asked_is_refused() {
        let hints = Hints::rc();
        assert_eq!(check(None, None, &hints), Err(Error::NothingToResolve));
        for (node, service) in [
            (Some("host\0name"), None),
            (Some("fe80::1%lo\0"), Some("7")),
            (None, Some("7\0")),
        ] {
            assert_eq!(check(node, service, &hints), Err(Error::NulInText));
        }
        let two = hints.destination(([10, 1, 0, 7], 7));
        assert!(matches!(check(Some("a"), None, &two), Err(Error::Hints(_))));
        assert_eq!(check(None, None, &two), Ok(()));
    }
}
