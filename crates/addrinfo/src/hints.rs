//! What to resolve to, and how.

use std::time::{Duration, Instant};

use rdmacm_core::{CmAddr, Deadline, Family, IbAddr, PathData, PortSpace, QpType};

use crate::error::{Error, NameError, Result};
use crate::flags::AddrInfoFlags;
use crate::route::end_of;

/// The default deadline of a resolution, for the name server and the kernel together: 15 s.
///
/// The system gives the first name server five seconds before it asks the second
/// (`timeout` of `resolv.conf(5)`), and again for each domain it searches: with a dead
/// first server two names take ten seconds, which leaves five for the kernel.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(15);

/// The hints of a resolution, for [`resolve`](crate::resolve).
///
/// A port space selects its queue pair type and a queue pair type its port space.
/// Without both, the default is reliable connected in [`PortSpace::TCP`], or, for a
/// service that exists only for datagrams, unreliable datagrams in
/// [`PortSpace::UDP`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "rdma_addrinfo")]
pub struct Hints {
    pub(crate) flags: AddrInfoFlags,
    pub(crate) family: Option<Family>,
    pub(crate) qp_type: Option<QpType>,
    pub(crate) port_space: Option<PortSpace>,
    pub(crate) source: Option<CmAddr>,
    pub(crate) destination: Option<CmAddr>,
    pub(crate) paths: Vec<PathData>,
    pub(crate) canonical_name: bool,
    pub(crate) deadline: Deadline,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            flags: AddrInfoFlags::empty(),
            family: None,
            qp_type: None,
            port_space: None,
            source: None,
            destination: None,
            paths: Vec::new(),
            canonical_name: false,
            deadline: Deadline::After(DEFAULT_DEADLINE),
        }
    }
}

impl Hints {
    /// Hints that leave everything open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reliable connected queue pairs in [`PortSpace::TCP`].
    #[must_use]
    pub fn rc() -> Self {
        Self::new().qp_type(QpType::RC).port_space(PortSpace::TCP)
    }

    /// Unreliable datagram queue pairs in [`PortSpace::UDP`].
    #[must_use]
    pub fn ud() -> Self {
        Self::new().qp_type(QpType::UD).port_space(PortSpace::UDP)
    }

    /// Sets flags, in addition to those set already.
    #[must_use]
    #[doc(alias = "ai_flags")]
    pub fn flags(mut self, flags: AddrInfoFlags) -> Self {
        self.flags |= flags;
        self
    }

    /// For listening: the result has a source and no destination.
    #[must_use]
    pub fn passive(self) -> Self {
        self.flags(AddrInfoFlags::PASSIVE)
    }

    /// The node is a numeric address; no name server is asked.
    #[must_use]
    pub fn numeric_host(self) -> Self {
        self.flags(AddrInfoFlags::NUMERICHOST)
    }

    /// Routes are not resolved.
    #[must_use]
    pub fn no_route(self) -> Self {
        self.flags(AddrInfoFlags::NOROUTE)
    }

    /// Only addresses of this family. If ibacm has a path, the native InfiniBand address
    /// precedes the IP address all the same, see [`Acm`](crate::Acm).
    ///
    /// [`Family::Ib`] selects native InfiniBand addresses: the node is a GID in the form
    /// of a numeric IPv6 address ([`numeric_host`](Self::numeric_host)), in the default
    /// partition, and the port space and the service's port make the service id, see
    /// [`IbAddr::from_v6`](rdmacm_core::IbAddr::from_v6).
    #[must_use]
    #[doc(alias = "ai_family")]
    pub fn family(mut self, family: Family) -> Self {
        self.family = Some(family);
        self
    }

    /// The type of queue pair.
    #[must_use]
    #[doc(alias = "ai_qp_type")]
    pub fn qp_type(mut self, qp_type: QpType) -> Self {
        self.qp_type = Some(qp_type);
        self
    }

    /// The port space.
    #[must_use]
    #[doc(alias = "ai_port_space")]
    pub fn port_space(mut self, port_space: PortSpace) -> Self {
        self.port_space = Some(port_space);
        self
    }

    /// The source address. With port 0 the kernel chooses the port. Destinations of
    /// another family are unreachable from it. In a passive resolution it replaces the
    /// node, which must be absent.
    #[must_use]
    #[doc(alias = "ai_src_addr")]
    pub fn source(mut self, source: impl Into<CmAddr>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The destination address. It replaces the node, which must be absent. A service
    /// sets its port.
    #[must_use]
    #[doc(alias = "ai_dst_addr")]
    pub fn destination(mut self, destination: impl Into<CmAddr>) -> Self {
        self.destination = Some(destination.into());
        self
    }

    /// The path to ask ibacm for, see [`Acm`](crate::Acm): path data, or a bare path
    /// record, which becomes path data without flags. As in librdmacm, several paths are
    /// not sent to ibacm. Without ibacm it does not change the route to a node or a
    /// [`destination`](Self::destination). Without a node or a destination, the
    /// destination is the end of the first path, a native InfiniBand address, unless an
    /// IP family is asked for or the resolution is passive.
    #[must_use]
    #[doc(alias = "ai_route")]
    pub fn paths<P: Into<PathData>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.paths = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Asks for the node's canonical name, which the first result holds.
    #[must_use]
    #[doc(alias = "ai_dst_canonname")]
    #[doc(alias = "ai_src_canonname")]
    pub fn canonical_name(mut self) -> Self {
        self.canonical_name = true;
        self
    }

    /// The service is an InfiniBand service, looked up at the subnet administrator,
    /// without a node. Of the other hints only the queue pair type, the deadline and
    /// [`no_route`](Self::no_route) apply: the port space is [`PortSpace::IB`].
    /// Needs Linux 6.18 or newer.
    ///
    /// The kernel does not cancel a query. If the deadline passes, or one port has answered, a
    /// thread waits for the end of the other queries, up to two seconds. If 64 such threads of the
    /// [`AddrInfoResolver`](crate::AddrInfoResolver) run already, or if no thread can be started,
    /// the caller waits instead: the resolution can return up to two seconds after its deadline.
    #[must_use]
    #[doc(alias = "RAI_SA")]
    pub fn subnet_administrator(self) -> Self {
        self.flags(AddrInfoFlags::SA)
    }

    /// The deadline of the resolution, for the name server and the kernel together;
    /// [`DEFAULT_DEADLINE`], 15 s, by default. With [`Deadline::Never`] the kernel resolves
    /// addresses and routes for an hour each. With
    /// [`subnet_administrator`](Self::subnet_administrator) a resolution can return up to two
    /// seconds after its deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// When the deadline is, counted from `now`; `None` if there is none.
    #[must_use]
    pub fn until(&self, now: Instant) -> Option<Instant> {
        self.deadline.until(now)
    }

    /// Rejects contradictions.
    pub(crate) fn check(&self) -> Result<()> {
        if AddrInfoFlags::from_bits(self.flags.bits()).is_none() {
            return Err(NameError::BadFlags.into());
        }
        if self.flags.contains(AddrInfoFlags::FAMILY) && self.family.is_none() {
            return Err(Error::Hints("FAMILY without a family"));
        }
        if self.asks_administrator() {
            return self.check_service();
        }
        if self.is_passive() && self.destination.is_some() {
            return Err(Error::Hints("a passive address has no destination"));
        }
        if let (Some(family), Some(address)) = (self.family, self.stand_in()) {
            if family != address.family() {
                return Err(Error::Hints("the address is not of the family asked for"));
            }
        }
        match (&self.source, &self.destination) {
            (Some(source), Some(destination)) if source.family() != destination.family() => {
                Err(Error::Hints("source and destination differ in family"))
            }
            _ => Ok(()),
        }
    }

    /// A service query allows no other hints than the queue pair type.
    fn check_service(&self) -> Result<()> {
        if self.flags.contains(AddrInfoFlags::DNS) {
            return Err(Error::SaAndDns);
        }
        if self.is_passive() {
            return Err(Error::Hints(
                "a query of the subnet administrator cannot be passive",
            ));
        }
        if self.source.is_some() || self.destination.is_some() {
            return Err(Error::Hints(
                "a query of the subnet administrator takes no address",
            ));
        }
        match self.family {
            None | Some(Family::Ib) => Ok(()),
            Some(_) => Err(Error::Hints(
                "InfiniBand services have InfiniBand addresses",
            )),
        }
    }

    /// Whether the service is looked up at the subnet administrator.
    #[must_use]
    pub fn asks_administrator(&self) -> bool {
        self.flags.contains(AddrInfoFlags::SA)
    }

    /// The destination and the source of the first path, used if there is neither a node
    /// nor a destination.
    pub(crate) fn ends_of_path(&self) -> Option<(IbAddr, IbAddr)> {
        let is_another = self.family.is_some_and(|family| family != Family::Ib);
        if self.is_passive() || is_another {
            return None;
        }
        let path = &self.paths.first()?.record;
        Some((end_of(path, path.dgid), end_of(path, path.sgid)))
    }

    /// The address that replaces a node.
    pub(crate) fn stand_in(&self) -> Option<&CmAddr> {
        if self.is_passive() {
            self.source.as_ref()
        } else {
            self.destination.as_ref()
        }
    }

    pub(crate) fn is_numeric_host(&self) -> bool {
        self.flags.contains(AddrInfoFlags::NUMERICHOST)
    }

    /// Whether the node may be the name of a local interface or device.
    pub(crate) fn may_be_local(&self) -> bool {
        self.is_passive() && !self.is_numeric_host() && self.family != Some(Family::Ib)
    }

    pub(crate) fn is_passive(&self) -> bool {
        self.flags.contains(AddrInfoFlags::PASSIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_refused() {
        let v4 = ([10, 1, 0, 7], 7);
        let v6 = ([0xfd71_u16, 0, 0, 0, 0, 0, 0, 1], 7);
        let family_flag = Hints::new().flags(AddrInfoFlags::FAMILY);
        assert!(family_flag.clone().family(Family::V4).check().is_ok());
        assert!(matches!(family_flag.check(), Err(Error::Hints(_))));
        assert!(matches!(
            Hints::new().source(v4).destination(v6).check(),
            Err(Error::Hints(_))
        ));
        assert!(matches!(
            Hints::new().passive().destination(v4).check(),
            Err(Error::Hints(_))
        ));
        let ib = CmAddr::any(Family::Ib);
        assert!(matches!(
            Hints::new().family(Family::Ib).destination(v4).check(),
            Err(Error::Hints(_))
        ));
        assert_eq!(Hints::new().source(ib).destination(ib).check(), Ok(()));
        let unknown = AddrInfoFlags::from_bits_retain(1 << 30);
        assert_eq!(
            Hints::new().flags(unknown).check(),
            Err(NameError::BadFlags.into())
        );
    }
}
