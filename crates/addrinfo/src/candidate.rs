//! The addresses of a name, before the kernel resolves them.

use std::net::SocketAddr;

use rdmacm_core::{CmAddr, Family, IbAddr, PortSpace};

use crate::error::{Error, NameError, Result};
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;
use crate::kind::Kind;
use crate::local::Local;
use crate::names::{self, NameQuery, NamedAddress, ResolverContext};
use crate::probe_target::ProbeTarget;
use crate::services;

/// Rejects invalid arguments. Returns the port space and queue pair type of the hints.
pub(crate) fn check(node: Option<&str>, service: Option<&str>, hints: &Hints) -> Result<Kind> {
    let kind = check_hints(node, service, hints)?;
    check_texts(node, service)?;
    Ok(kind)
}

/// Rejects texts that no name has.
pub(crate) fn check_texts(node: Option<&str>, service: Option<&str>) -> Result<()> {
    let has_nul = |text: Option<&str>| text.is_some_and(|text| text.as_bytes().contains(&0));
    if has_nul(node) || has_nul(service) {
        return Err(Error::NulInText);
    }
    Ok(())
}

/// As [`check`], but for the characters of the texts.
pub(crate) fn check_hints(
    node: Option<&str>,
    service: Option<&str>,
    hints: &Hints,
) -> Result<Kind> {
    hints.check()?;
    if hints.asks_administrator() {
        services::wanted(node, service)?;
        return Kind::new(Some(PortSpace::IB), hints.qp_type);
    }
    let kind = Kind::new(hints.port_space, hints.qp_type)?;
    match (node, hints.stand_in()) {
        (None, None) => match (hints.ends_of_path(), hints.source) {
            (None, _) if service.is_none() => Err(Error::NothingToResolve),
            (Some(_), Some(source)) if source.family() != Family::Ib => {
                Err(Error::Hints("source and paths differ in family"))
            }
            _ => Ok(kind),
        },
        (Some(_), Some(_)) => Err(Error::Hints("a node and an address to stand in its place")),
        // Names have no InfiniBand addresses.
        (Some(_), None) if hints.family == Some(Family::Ib) && !hints.is_numeric_host() => {
            Err(NameError::Family.into())
        }
        _ => Ok(kind),
    }
}

/// The port space and queue pair type. If the hints leave them open, a service that
/// exists only for datagrams selects datagrams.
pub(crate) fn kind_of_service(
    kind: Kind,
    service: Option<&str>,
    hints: &Hints,
    context: ResolverContext<'_>,
) -> Kind {
    if kind.is_datagram() || hints.qp_type.is_some() {
        return kind;
    }
    let Some(datagrams) = Kind::for_datagrams(hints.port_space) else {
        return kind;
    };
    let unknown = Err(NameError::Service.into());
    let is_for_datagrams = service_port(service, kind, context) == unknown
        && service_port(service, datagrams, context).is_ok();
    if is_for_datagrams { datagrams } else { kind }
}

/// The address of a node to connect to that is a numeric address, at a port number, for which
/// nothing has to be looked up.
pub(crate) fn literal(
    node: Option<&str>,
    service: Option<&str>,
    hints: &Hints,
) -> Option<ProbeTarget> {
    let node = node.filter(|_| !hints.is_passive())?;
    let address = names::literal(node, service, hints.family)?;
    Some(ProbeTarget {
        canonical_name: hints.canonical_name.then(|| node.to_owned()),
        source: hints.source,
        ..CmAddr::from(address).into()
    })
}

/// Every address of the node, or the address of the hints if there is no node.
pub(crate) fn candidates(
    node: Option<&str>,
    service: Option<&str>,
    hints: &Hints,
    kind: Kind,
    context: ResolverContext<'_>,
) -> Result<Vec<ProbeTarget>> {
    if let Some(&address) = hints.stand_in() {
        let port = service_port(service, kind, context)?;
        return Ok(vec![ProbeTarget {
            source: hints.source,
            ..at_port(address, port, kind).into()
        }]);
    }
    if let (None, Some((to, from))) = (node, hints.ends_of_path()) {
        let port = service_port(service, kind, context)?;
        let source = from.with_ip_service(kind.port_space, 0);
        return Ok(vec![ProbeTarget {
            source: hints.source.or(Some(source.into())),
            ..at_port(to.into(), port, kind).into()
        }]);
    }
    let names = NameQuery {
        node,
        service,
        family: hints.family.map(ip_family),
        datagram: kind.is_datagram(),
        flags: hints.flags,
        canonical_name: hints.canonical_name,
    };
    let found = names.resolve(context)?.into_iter();
    Ok(found.map(|named| candidate(named, hints, kind)).collect())
}

/// A name's address, of the family asked for.
fn candidate(named: NamedAddress, hints: &Hints, kind: Kind) -> ProbeTarget {
    let address: CmAddr = match (named.address, hints.family) {
        (SocketAddr::V6(address), Some(Family::Ib)) => {
            IbAddr::from_v6(address, kind.port_space).into()
        }
        (address, _) => address.into(),
    };
    ProbeTarget {
        canonical_name: named.canonical_name,
        source: hints.source,
        ..address.into()
    }
}

/// The addresses of a local interface, device or the whole machine, with the service's
/// port.
pub(crate) fn local_candidates(
    local: &Local,
    service: Option<&str>,
    hints: &Hints,
    kind: Kind,
    context: ResolverContext<'_>,
) -> Result<Vec<ProbeTarget>> {
    let port = service_port(service, kind, context)?;
    let mut addresses = local.addresses()?;
    addresses.retain(|one| hints.family.is_none_or(|family| family == one.family()));
    if addresses.is_empty() {
        return Err(NameError::AddressFamily.into());
    }
    let candidate = |address| ProbeTarget {
        source: hints.source,
        ..at_port(address, port, kind).into()
    };
    Ok(addresses.into_iter().map(candidate).collect())
}

/// The port of a service; `None` without one.
fn service_port(
    service: Option<&str>,
    kind: Kind,
    context: ResolverContext<'_>,
) -> Result<Option<u16>> {
    let names = NameQuery {
        node: None,
        service,
        family: None,
        datagram: kind.is_datagram(),
        flags: AddrInfoFlags::empty(),
        canonical_name: false,
    };
    service.map(|_| names.resolve_port(context)).transpose()
}

/// The address with the service's port, if there is one. A native InfiniBand address gets
/// the service id of the port in the port space.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup_limit::LookupLimits;
    use crate::names::{Host, HostQuery, NameResolver, ServiceKind};
    use rdmacm_core::{PortSpace, QpType};
    use std::sync::Arc;

    /// Knows a service of each kind, and one of both.
    #[derive(Debug)]
    struct Services;

    impl NameResolver for Services {
        fn host(&self, _: &HostQuery<'_>) -> Result<Host, NameError> {
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
        let resolver: Arc<dyn NameResolver> = Arc::new(Services);
        let context = ResolverContext {
            resolver: Some(&resolver),
            limits: &LookupLimits::default(),
            until: None,
        };
        let kind = check(None, Some(service), hints).unwrap();
        let kind = kind_of_service(kind, Some(service), hints, context);
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
    fn invalid_arguments_are_rejected() {
        let hints = Hints::rc();
        assert_eq!(check(None, None, &hints), Err(Error::NothingToResolve));
        for (node, service) in [
            (Some("host\0name"), None),
            (Some("fe80::1%lo\0"), Some("7")),
            (None, Some("7\0")),
        ] {
            assert_eq!(check(node, service, &hints), Err(Error::NulInText));
        }
        let ib = hints.clone().family(Family::Ib);
        let named = check(Some("storage-7"), None, &ib);
        assert_eq!(named, Err(NameError::Family.into()));
        let two = hints.destination(([10, 1, 0, 7], 7));
        assert!(matches!(check(Some("a"), None, &two), Err(Error::Hints(_))));
        assert!(check(None, None, &two).is_ok());
    }
}
