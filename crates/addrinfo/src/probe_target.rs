//! The addresses to resolve, with what is known before the kernel resolves them.

use std::net::SocketAddr;

use rdmacm_core::{CmAddr, PathData};

use crate::acm::{Failure, Reply, Request};
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;
use crate::prober::Probe;

/// An address to resolve, with its source and paths as far as they are known.
#[derive(Debug)]
pub(crate) struct ProbeTarget {
    pub(crate) address: CmAddr,
    pub(crate) canonical_name: Option<String>,
    /// The source address that the caller gave, or that a service has.
    pub(crate) source: Option<CmAddr>,
    /// The source address that ibacm advises, if the caller gave none.
    pub(crate) advised_source: Option<CmAddr>,
    /// The path records of ibacm.
    pub(crate) paths: Vec<PathData>,
    /// How far the resolution is.
    pub(crate) state: Probe,
}

impl From<CmAddr> for ProbeTarget {
    fn from(address: CmAddr) -> Self {
        Self {
            address,
            canonical_name: None,
            source: None,
            advised_source: None,
            paths: Vec::new(),
            state: Probe::Pending,
        }
    }
}

/// Asks ibacm about one target after the other, unless it is absent. Without an answer in
/// time nothing is known of a target.
pub(crate) fn advise(
    targets: &mut [ProbeTarget],
    hints: &Hints,
    ask: impl Fn(&Request<'_>) -> Result<Reply, Failure>,
) {
    for target in targets {
        match ask(&request(target.address, hints)) {
            Ok(reply) => target.add(reply),
            Err(Failure::Absent(_) | Failure::Skipped) => break,
            Err(_) => {}
        }
    }
}

fn request(destination: CmAddr, hints: &Hints) -> Request<'_> {
    let no_delay = AddrInfoFlags::NUMERICHOST | AddrInfoFlags::NOROUTE;
    Request {
        source: hints.source,
        destination,
        paths: &hints.paths,
        no_delay: hints.flags.intersects(no_delay),
    }
}

impl ProbeTarget {
    /// The same target, whose resolution has not begun.
    pub(crate) fn not_begun(&self) -> Self {
        Self {
            address: self.address,
            canonical_name: self.canonical_name.clone(),
            source: self.source,
            advised_source: self.advised_source,
            paths: self.paths.clone(),
            state: Probe::Pending,
        }
    }

    /// The source that the caller or ibacm gave.
    pub(crate) fn asked_source(&self) -> Option<CmAddr> {
        self.source.or(self.advised_source)
    }

    fn add(&mut self, known: Reply) {
        let advised = known.source.map(|ip| SocketAddr::new(ip, 0).into());
        // An address of another family is no source for this destination.
        let is_of_family = |advised: &CmAddr| advised.family() == self.address.family();
        if self.source.is_none() {
            self.advised_source = advised.filter(is_of_family);
        }
        self.paths = known.paths;
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
        let mut target = ProbeTarget {
            source,
            ..CmAddr::from(TO).into()
        };
        target.add(reply);
        target.advised_source
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
