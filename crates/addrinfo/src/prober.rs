//! Resolves addresses and routes with the kernel, up to [`MAX_ACTIVE`] at a time.

use std::mem;
use std::time::{Duration, Instant};

use rdmacm_core::{CmAddr, CmId, Deadline, Error, Event, EventKind, PathData, PortSpace};

use crate::channel_source::ResolutionChannel;
use crate::kind::Kind;
use crate::names::is_of_one_link;
use crate::probe_target::ProbeTarget;
use crate::route::{DevicePort, Route, settable};
use crate::unreachable::{Reason, Step, Unreachable};

/// The result for one target: its source and route, or why it cannot be reached.
pub(crate) type ProbeResult = Result<Reachable, Unreachable>;

/// The source and the route of a reachable target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reachable {
    pub(crate) source: Option<CmAddr>,
    pub(crate) route: Route,
}

/// The kernel's timeout if the caller sets no deadline. On InfiniBand a query for a route that is
/// lost is repeated after a tenth of it.
const NO_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// The kernel counts in milliseconds and rejects 0.
const SHORTEST: Duration = Duration::from_millis(1);
/// The kernel's longest timeout.
const LONGEST: Duration = Duration::from_millis(0x7fff_ffff);

/// How many targets are resolved at a time. Each takes a CM id of the kernel and sends
/// packets to a neighbour, and a name server decides how many there are.
const MAX_ACTIVE: usize = 64;

/// Resolves targets on one channel, with one port space, queue pair type and deadline.
pub(crate) struct Prober<'channel> {
    pub(crate) channel: &'channel ResolutionChannel,
    pub(crate) kind: Kind,
    pub(crate) with_routes: bool,
    pub(crate) limit: TimeLimit,
}

/// How long targets are resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    /// When it ends, on the channel's clock.
    until: Option<Instant>,
    /// The kernel's timeout of each command: never shorter than the time until the end.
    timeout: Duration,
}

impl TimeLimit {
    /// The limit of a resolution that began with this deadline and ends at `until`.
    pub(crate) fn new(
        deadline: Deadline,
        until: Option<Instant>,
        now: impl FnOnce() -> Instant,
    ) -> Self {
        let timeout = match (deadline, until) {
            (Deadline::After(whole), Some(_)) => whole,
            (_, Some(until)) => until.saturating_duration_since(now()),
            (_, None) => NO_DEADLINE,
        };
        Self {
            until,
            timeout: timeout.clamp(SHORTEST, LONGEST),
        }
    }
}

/// The state of one target's resolution.
#[derive(Debug)]
pub(crate) enum Probe {
    Pending,
    Active(ActiveProbe),
    Done(ProbeResult),
}

/// A resolution in progress in the kernel.
#[derive(Debug)]
pub(crate) struct ActiveProbe {
    id: CmId,
    step: Step,
    /// When the kernel gives up, if that is before the end.
    until: Option<Instant>,
    /// Whether its source is the one that ibacm advises.
    advised: bool,
}

impl Probe {
    fn is_active(&self) -> bool {
        matches!(self, Self::Active(_))
    }

    /// The route, which it no longer has then; what is not done has missed its deadline.
    pub(crate) fn take_route(&mut self) -> Result<Route, Unreachable> {
        match self {
            Self::Done(Ok(found)) => Ok(mem::take(&mut found.route)),
            Self::Done(Err(unreachable)) => Err(unreachable.clone()),
            Self::Active(ActiveProbe { step, .. }) => Err(deadline_passed(*step)),
            Self::Pending => Err(deadline_passed(Step::Address)),
        }
    }
}

impl Prober<'_> {
    /// Resolves every target, none of which has begun, in their order and [`MAX_ACTIVE`] at a
    /// time. Those missing at the deadline are not done.
    pub(crate) fn destinations(&self, targets: &mut [ProbeTarget]) -> Result<(), Error> {
        let batch_time = self.batch_time(targets.len());
        let deadline = self.limit.until.map_or(Deadline::Never, Deadline::At);
        let (mut begun, mut active) = (0, 0);
        loop {
            while active < MAX_ACTIVE {
                let Some(target) = targets.get_mut(begun) else {
                    break;
                };
                let end =
                    batch_time.and_then(|batch_time| self.channel.now().checked_add(batch_time));
                self.start(target, end)?;
                begun += 1;
                active += usize::from(target.state.is_active());
            }
            if active == 0 {
                return Ok(());
            }
            match self.channel.next(deadline) {
                Ok(event) => active -= usize::from(self.handle_event(targets, &event)?),
                Err(Error::DeadlinePassed) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Finds the device of an address to listen on.
    pub(crate) fn local(&self, address: CmAddr) -> Result<Probe, Error> {
        let id = self.create()?;
        // Port 0, so that a running server or a privileged port does not prevent the
        // lookup of the device.
        let bound = scoped(Step::Bind, address, None).and_then(|()| {
            id.bind(address.with_port(0))
                .map_err(|error| self.refused(Step::Bind, error))
        });
        Ok(Probe::Done(bound.and_then(|()| self.query(&id))))
    }

    /// The time of each target if not all are active at once, so that silent neighbours do
    /// not use up the time of the targets after them.
    fn batch_time(&self, targets: usize) -> Option<Duration> {
        if targets <= MAX_ACTIVE {
            return None;
        }
        let rounds = u32::try_from(targets.div_ceil(MAX_ACTIVE)).unwrap_or(u32::MAX);
        let until = self.limit.until?;
        let left = until.saturating_duration_since(self.channel.now());
        Some(left / rounds)
    }

    /// Tries the advised source first. If the kernel rejects it, continues without.
    fn start(&self, target: &mut ProbeTarget, until: Option<Instant>) -> Result<(), Error> {
        if target.advised_source.is_some() {
            self.start_from(target.advised_source, target, until)?;
            if target.state.is_active() {
                return Ok(());
            }
        }
        self.start_from(target.source, target, until)
    }

    fn start_from(
        &self,
        source: Option<CmAddr>,
        target: &mut ProbeTarget,
        until: Option<Instant>,
    ) -> Result<(), Error> {
        // The result gets the caller's port afterwards: a port that is in use would
        // fail here.
        let source = source.map(|source| source.with_port(0));
        let id = self.create()?;
        let active = scoped(Step::Address, target.address, source).and_then(|()| {
            id.resolve_addr(source, target.address, self.timeout(until))
                .map_err(|error| self.refused(Step::Address, error))
        });
        target.state = match active {
            Ok(()) => Probe::Active(ActiveProbe {
                id,
                step: Step::Address,
                until,
                advised: source.is_some() && source == target.advised_source,
            }),
            Err(reason) => Probe::Done(Err(reason)),
        };
        Ok(())
    }

    fn create(&self) -> Result<CmId, Error> {
        let Kind {
            port_space,
            qp_type,
        } = self.kind;
        self.channel.create_id_of_type(port_space, qp_type)
    }

    fn refused(&self, step: Step, error: Error) -> Unreachable {
        self.explained(error.raw_os_error(), Unreachable::refused(step)(error))
    }

    /// For an id of `IPOIB` on another interface the kernel only says `EINVAL`.
    fn explained(&self, errno: Option<i32>, unreachable: Unreachable) -> Unreachable {
        if self.kind.port_space == PortSpace::IPOIB && errno == Some(libc::EINVAL) {
            Unreachable {
                reason: Reason::OnlyIpoib,
                ..unreachable
            }
        } else {
            unreachable
        }
    }

    /// Processes an event of an active probe. Returns whether the probe is not active any more.
    fn handle_event(&self, targets: &mut [ProbeTarget], event: &Event) -> Result<bool, Error> {
        for target in targets {
            match &target.state {
                Probe::Active(active) if *event.id() == active.id => {
                    self.progress(target, event)?;
                    return Ok(!target.state.is_active());
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// Processes an event of a target's active probe.
    fn progress(&self, target: &mut ProbeTarget, event: &Event) -> Result<(), Error> {
        let Probe::Active(active) = &mut target.state else {
            return Ok(());
        };
        let result = match (event.failure(), event.kind()) {
            (None, EventKind::AddrResolved) if self.with_routes => {
                // The path of ibacm begins at the source that it advises.
                let is_from_here = target.advised_source.is_none() || active.advised;
                let paths = is_from_here.then_some(&target.paths[..]);
                match self.start_route(active, paths.unwrap_or_default()) {
                    Ok(()) => {
                        active.step = Step::Route;
                        return Ok(());
                    }
                    Err(error) => Err(no_route(&active.id, error)),
                }
            }
            (None, EventKind::AddrResolved | EventKind::RouteResolved) => self.query(&active.id),
            (None, _) => return Ok(()),
            (Some(_), _) if active.advised && active.step == Step::Address => {
                let until = active.until;
                return self.start_from(target.source, target, until);
            }
            (Some(failure), _) => {
                let unreachable = Unreachable {
                    step: active.step,
                    reason: Reason::Failed(failure),
                };
                Err(self.explained(failure.raw_os_error(), unreachable))
            }
        };
        target.state = Probe::Done(result);
        Ok(())
    }

    /// Sets the known path records if the kernel accepts them, otherwise resolves the route.
    fn start_route(&self, active: &ActiveProbe, paths: &[PathData]) -> Result<(), Error> {
        let paths = settable(paths);
        if !paths.is_empty() && active.id.set_ib_path(paths).is_ok() {
            return Ok(());
        }
        active.id.resolve_route(self.timeout(active.until))
    }

    /// Queries the addresses, device and path records of an id.
    fn query(&self, id: &CmId) -> ProbeResult {
        let route = id.route(self.with_routes);
        let route = route.map_err(Unreachable::refused(Step::Query))?;
        Ok(Reachable {
            source: route.addresses.source,
            route: Route {
                device_port: DevicePort::new(
                    &route.addresses,
                    route.gids,
                    self.channel.device_lookup(),
                ),
                path_records: route.path_records,
            },
        })
    }

    /// The kernel's timeout for a target that may take until `until`, if that is before the
    /// end.
    fn timeout(&self, until: Option<Instant>) -> Duration {
        until.map_or(self.limit.timeout, |until| {
            let left = until.saturating_duration_since(self.channel.now());
            left.clamp(SHORTEST, LONGEST)
        })
    }
}

/// RoCE resolves routes by network interface, which a native InfiniBand address lacks.
fn no_route(id: &CmId, error: Error) -> Unreachable {
    let is_infiniband = || matches!(id.peer_addr(), Ok(Some(CmAddr::Ib(_))));
    if error.raw_os_error() == Some(libc::ENODEV) && is_infiniband() {
        return Unreachable {
            step: Step::Route,
            reason: Reason::OnlyInfiniband,
        };
    }
    Unreachable::refused(Step::Route)(error)
}

/// Checks that a link-local address has an interface, by its own scope id or the
/// source's. The kernel would choose one.
fn scoped(step: Step, address: CmAddr, source: Option<CmAddr>) -> Result<(), Unreachable> {
    let scope_id = source.map_or(0, |source| source.scope_id());
    let is_of_one_link = address.ip().is_some_and(is_of_one_link);
    if is_of_one_link && address.scope_id() == 0 && scope_id == 0 {
        return Err(Unreachable {
            step,
            reason: Reason::NoScope,
        });
    }
    Ok(())
}

fn deadline_passed(step: Step) -> Unreachable {
    Unreachable {
        step,
        reason: Reason::Deadline,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_timeout_is_that_of_the_deadline() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let hour = 60 * 60;
        for (deadline, until, seconds) in [
            (Deadline::After(Duration::from_secs(15)), Some(later(3)), 15),
            (Deadline::At(later(20)), Some(later(7)), 7),
            (
                Deadline::At(later(3 * hour)),
                Some(later(2 * hour)),
                2 * hour,
            ),
            (Deadline::Never, None, hour),
        ] {
            let limit = TimeLimit::new(deadline, until, || now);
            assert_eq!(limit.timeout, Duration::from_secs(seconds), "{deadline:?}");
            assert_eq!(limit.until, until);
        }
        let passed = TimeLimit::new(Deadline::At(now), Some(now), || later(1));
        assert_eq!(passed.timeout, SHORTEST);
    }

    #[test]
    fn link_local_addresses_need_a_scope() {
        let address = |text: &str| CmAddr::from(text.parse::<std::net::SocketAddr>().unwrap());
        for text in ["[fe80::1]:7", "[ff02::1]:7"] {
            let refused = scoped(Step::Address, address(text), None).unwrap_err();
            assert_eq!(refused.reason, Reason::NoScope, "{text}");
            let source = Some(address("[fe80::2%1]:0"));
            assert_eq!(scoped(Step::Address, address(text), source), Ok(()));
        }
        for text in [
            "[fe80::1%1]:7",
            "[ff02::1%1]:7",
            "[ff05::1]:7",
            "224.0.0.1:7",
        ] {
            assert_eq!(scoped(Step::Address, address(text), None), Ok(()), "{text}");
        }
    }
}
