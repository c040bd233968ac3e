//! What is known of the way to a candidate before the kernel is asked.

use std::net::SocketAddr;

use rdmacm_core::{CmAddr, PathData};

use crate::acm::{Acm, Limit, Reply, Request};
use crate::candidate::Candidate;
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;

/// An address to ask the kernel about, and what is known of the way there.
#[derive(Clone, Debug)]
pub(crate) struct Lead {
    pub(crate) address: CmAddr,
    pub(crate) canonical_name: Option<String>,
    /// The address to start from.
    pub(crate) source: Option<CmAddr>,
    /// The one that ibacm advises, where the caller gave none.
    pub(crate) advised_source: Option<CmAddr>,
    /// The paths ibacm knows.
    pub(crate) route: Vec<PathData>,
}

/// A lead for each candidate. ibacm is asked about one after another: there is
/// one, or there are as many as a name has addresses.
pub(crate) fn leads(
    candidates: Vec<Candidate>,
    hints: &Hints,
    acm: Option<(&Acm, Limit)>,
) -> Vec<Lead> {
    let lead = |candidate: Candidate| {
        let reply = acm.map(|(acm, limit)| acm.ask(&request(candidate.address, hints), limit));
        let source = candidate.source.or(hints.source);
        Lead::new(candidate, source, reply.unwrap_or_default())
    };
    candidates.into_iter().map(lead).collect()
}

fn request(destination: CmAddr, hints: &Hints) -> Request<'_> {
    let hasty = AddrInfoFlags::NUMERICHOST | AddrInfoFlags::NOROUTE;
    Request {
        source: hints.source,
        destination,
        paths: &hints.route,
        no_delay: hints.flags.intersects(hasty),
    }
}

impl Lead {
    /// Where to start from as far as anybody but the kernel says.
    pub(crate) fn asked_source(&self) -> Option<CmAddr> {
        self.source.or(self.advised_source)
    }

    fn new(candidate: Candidate, source: Option<CmAddr>, known: Reply) -> Self {
        let address = candidate.address;
        let advised = known.source.map(|ip| SocketAddr::new(ip, 0).into());
        // An address of another family leads nowhere.
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
        Lead::new(CmAddr::from(TO).into(), source, reply).advised_source
    }

    #[test]
    fn advice_is_for_who_has_no_source_of_this_family() {
        let ip = [10, 1, 0, 3].into();
        assert_eq!(advised(None, ip), Some(([10, 1, 0, 3], 0).into()));
        assert_eq!(advised(Some(([10, 1, 0, 4], 9).into()), ip), None);
        assert_eq!(advised(None, [0xfd; 16].into()), None);
    }

    #[test]
    fn figures_and_no_route_are_in_haste() {
        for (hints, expected) in [
            (Hints::rc(), false),
            (Hints::rc().numeric_host(), true),
            (Hints::rc().no_route(), true),
        ] {
            assert_eq!(request(TO.into(), &hints).no_delay, expected);
        }
    }
}
