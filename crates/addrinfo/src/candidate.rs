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

/// What an id is for. Where the hints leave it open, a service that is known for
/// datagrams alone decides.
pub(crate) fn kind(service: Option<&str>, hints: &Hints, knowledge: Knowledge<'_>) -> Result<Kind> {
    let kind = Kind::new(hints.port_space, hints.qp_type)?;
    let Some(datagrams) = Kind::for_datagrams(hints.port_space, hints.qp_type) else {
        return Ok(kind);
    };
    let unknown = Err(NameError::Service.into());
    let is_for_datagrams = !kind.is_datagram()
        && service_port(service, kind, knowledge) == unknown
        && service_port(service, datagrams, knowledge).is_ok();
    Ok(if is_for_datagrams { datagrams } else { kind })
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
    use crate::names::{Host, HostQuestion, Lookups, Resolver, ServiceKind};
    use rdmacm_core::{PortSpace, QpType};
    use std::sync::Arc;

    /// Knows a service of each kind, and one of both.
    #[derive(Debug)]
    struct Services;

    impl Resolver for Services {
        fn host(&self, _: &HostQuestion<'_>) -> Result<Host, NameError> {
            Err(NameError::NoName)
        }

        fn service(&self, name: &str, kind: ServiceKind) -> Result<u16, NameError> {
            match (name, kind) {
                ("streams" | "both", ServiceKind::Stream) => Ok(7471),
                ("datagrams" | "both", ServiceKind::Datagram) => Ok(7472),
                _ => Err(NameError::Service),
            }
        }
    }

    fn kind_of(service: &str, hints: &Hints) -> (PortSpace, QpType) {
        let resolver: Arc<dyn Resolver> = Arc::new(Services);
        let knowledge = Knowledge {
            resolver: &resolver,
            lookups: &Lookups::default(),
            until: None,
        };
        let kind = kind(Some(service), hints, knowledge).unwrap();
        (kind.port_space, kind.qp_type)
    }

    #[test]
    fn a_service_for_datagrams_decides_what_the_hints_leave_open() {
        let open = Hints::new();
        for service in ["streams", "both", "nobodys", "7471", "70000"] {
            assert_eq!(kind_of(service, &open), (PortSpace::TCP, QpType::RC));
        }
        assert_eq!(kind_of("datagrams", &open), (PortSpace::UDP, QpType::UD));
        let infiniband = open.port_space(PortSpace::IB);
        assert_eq!(kind_of("streams", &infiniband), (PortSpace::IB, QpType::RC));
        assert_eq!(
            kind_of("datagrams", &infiniband),
            (PortSpace::IB, QpType::UD)
        );
        for hints in [Hints::rc(), Hints::new().port_space(PortSpace::TCP)] {
            assert_eq!(kind_of("datagrams", &hints), (PortSpace::TCP, QpType::RC));
        }
    }

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
