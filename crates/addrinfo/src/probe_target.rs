//! The addresses to resolve, with what is known before the kernel resolves them.

use std::net::SocketAddr;

use rdmacm_core::{CmAddr, PathData};

use crate::acm::{Acm, Limit, Reply, Request};
use crate::candidate::Candidate;
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;

/// An address to resolve, with its source and paths as far as they are known.
#[derive(Clone, Debug)]
pub(crate) struct ProbeTarget {
    pub(crate) address: CmAddr,
    pub(crate) canonical_name: Option<String>,
    /// The source address that the caller gave.
    pub(crate) source: Option<CmAddr>,
    /// The source address that ibacm advises, if the caller gave none.
    pub(crate) advised_source: Option<CmAddr>,
    /// The path records of ibacm.
    pub(crate) route: Vec<PathData>,
}

/// Makes a target of each candidate. Queries ibacm about one after the other.
pub(crate) fn targets(
    candidates: Vec<Candidate>,
    hints: &Hints,
    acm: Option<(&Acm, Limit)>,
) -> Vec<ProbeTarget> {
    let target = |candidate: Candidate| {
        let reply = acm.map(|(acm, limit)| acm.ask(&request(candidate.address, hints), limit));
        let source = candidate.source.or(hints.source);
        ProbeTarget::new(candidate, source, reply.unwrap_or_default())
    };
    candidates.into_iter().map(target).collect()
}

fn request(destination: CmAddr, hints: &Hints) -> Request<'_> {
    let no_delay = AddrInfoFlags::NUMERICHOST | AddrInfoFlags::NOROUTE;
    Request {
        source: hints.source,
        destination,
        paths: &hints.route,
        no_delay: hints.flags.intersects(no_delay),
    }
}

impl ProbeTarget {
    /// The source that the caller or ibacm gave.
    pub(crate) fn asked_source(&self) -> Option<CmAddr> {
        self.source.or(self.advised_source)
    }

    fn new(candidate: Candidate, source: Option<CmAddr>, known: Reply) -> Self {
        let address = candidate.address;
        let advised = known.source.map(|ip| SocketAddr::new(ip, 0).into());
        // An address of another family is no source for this destination.
        let advised = advised.filter(|advised: &CmAddr| advised.family() == address.family());
        Self {
            address,
            canonical_name: candidate.canonical_name,
            source,
            advised_source: if source.is_none() { advised } else { None },
            route: known.paths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: ([u8; 4], u16) = ([10, 1, 0, 7], 7471);

    fn advised(source: Option<CmAddr>, ip: std::net::IpAddr) -> Option<CmAddr> {
        let reply = Reply {
            source: Some(ip),
            paths: Vec::new(),
        };
        ProbeTarget::new(CmAddr::from(TO).into(), source, reply).advised_source
    }

    #[test]
    fn an_advised_source_counts_without_one_of_the_callers_and_in_the_same_family() {
        let ip = [10, 1, 0, 3].into();
        assert_eq!(advised(None, ip), Some(([10, 1, 0, 3], 0).into()));
        assert_eq!(advised(Some(([10, 1, 0, 4], 9).into()), ip), None);
        assert_eq!(advised(None, [0xfd; 16].into()), None);
    }

    #[test]
    fn numeric_host_and_no_route_ask_ibacm_for_no_delay() {
        for (hints, expected) in [
            (Hints::rc(), false),
            (Hints::rc().numeric_host(), true),
            (Hints::rc().no_route(), true),
        ] {
            assert_eq!(request(TO.into(), &hints).no_delay, expected);
        }
    }
}
