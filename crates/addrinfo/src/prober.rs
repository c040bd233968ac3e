//! Resolves addresses and routes with the kernel, up to [`MAX_ACTIVE`] at a time.

use std::time::{Duration, Instant};

use rdmacm_core::{
    CmAddr, CmId, Deadline, Error, Event, EventChannel, EventKind, IdHandle, PortSpace, Transport,
};

use crate::kind::Kind;
use crate::probe_target::ProbeTarget;
use crate::route::{Route, Via, settable};
use crate::unreachable::{Reason, Step, Unreachable};

/// The result for one target: its source and route, or why it cannot be reached.
pub(crate) type ProbeResult = Result<Reachable, Unreachable>;

/// The source and the route of a reachable target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reachable {
    pub(crate) source: Option<CmAddr>,
    pub(crate) route: Route,
}

/// The kernel's longest timeout stands for "as long as it takes".
const NO_TIMEOUT: Duration = Duration::from_millis(0x7fff_ffff);

/// How many targets are resolved at a time. Each takes a CM id of the kernel and sends
/// packets to a neighbour, and a name server decides how many there are.
const MAX_ACTIVE: usize = 64;

/// Resolves targets on one channel, with one port space, queue pair type and deadline.
/// The deadline is on the channel's clock.
pub(crate) struct Prober<'channel> {
    pub(crate) channel: &'channel EventChannel,
    pub(crate) kind: Kind,
    pub(crate) with_routes: bool,
    pub(crate) until: Option<Instant>,
}

/// The state of one target's resolution.
enum Probe<'target> {
    Pending(&'target ProbeTarget),
    Active(ActiveProbe<'target>),
    Done(Box<ProbeResult>),
}

/// A resolution in progress in the kernel.
struct ActiveProbe<'target> {
    id: CmId,
    step: Step,
    target: &'target ProbeTarget,
    /// When the kernel gives up.
    until: Option<Instant>,
    /// Whether its source is the one that ibacm advises.
    advised: bool,
}

impl Probe<'_> {
    fn done(answer: ProbeResult) -> Self {
        Self::Done(Box::new(answer))
    }
}

impl Prober<'_> {
    /// Resolves every target, [`MAX_ACTIVE`] at a time. The results are in the order of the
    /// targets; those missing at the deadline are errors.
    pub(crate) fn destinations(&self, targets: &[ProbeTarget]) -> Result<Vec<ProbeResult>, Error> {
        let share = self.share(targets.len());
        let mut probes: Vec<_> = targets.iter().map(Probe::Pending).collect();
        loop {
            self.start_more(&mut probes, share)?;
            if !probes.iter().any(is_active) {
                break;
            }
            match self.channel.next_event(self.deadline()) {
                Ok(event) => self.handle_event(&mut probes, &event)?,
                Err(Error::DeadlinePassed) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(probes.into_iter().map(result).collect())
    }

    /// Finds the device of an address to listen on.
    pub(crate) fn local(&self, address: CmAddr) -> Result<ProbeResult, Error> {
        let id = self.create()?;
        // Port 0, so that a running server or a privileged port does not prevent the
        // lookup of the device.
        let bound = scoped(Step::Bind, address, None).and_then(|()| {
            id.bind(address.with_port(0))
                .map_err(|error| self.refused(Step::Bind, error))
        });
        Ok(bound.and_then(|()| self.query(&id)))
    }

    /// The time of each target if not all are active at once, so that silent neighbours do
    /// not use up the time of the targets after them.
    fn share(&self, targets: usize) -> Option<Duration> {
        let rounds = u32::try_from(targets.div_ceil(MAX_ACTIVE)).unwrap_or(u32::MAX);
        let left = self.until?.saturating_duration_since(self.channel.now());
        (rounds > 1).then(|| left / rounds)
    }

    /// Starts pending probes in their order, while fewer than [`MAX_ACTIVE`] are active.
    fn start_more(&self, probes: &mut [Probe<'_>], share: Option<Duration>) -> Result<(), Error> {
        let mut free =
            MAX_ACTIVE.saturating_sub(probes.iter().filter(|one| is_active(one)).count());
        for probe in probes {
            if free == 0 {
                break;
            }
            if let Probe::Pending(target) = *probe {
                let end = share.and_then(|share| self.channel.now().checked_add(share));
                *probe = self.start(target, end.or(self.until))?;
                free -= usize::from(is_active(probe));
            }
        }
        Ok(())
    }

    /// Tries the advised source first. If the kernel rejects it, continues without.
    fn start<'target>(
        &self,
        target: &'target ProbeTarget,
        until: Option<Instant>,
    ) -> Result<Probe<'target>, Error> {
        if target.advised_source.is_some() {
            let probe = self.start_from(target.advised_source, target, until)?;
            if is_active(&probe) {
                return Ok(probe);
            }
        }
        self.start_from(target.source, target, until)
    }

    fn start_from<'target>(
        &self,
        source: Option<CmAddr>,
        target: &'target ProbeTarget,
        until: Option<Instant>,
    ) -> Result<Probe<'target>, Error> {
        // The result gets the caller's port afterwards: a port that is in use would
        // fail here.
        let source = source.map(|source| source.with_port(0));
        let id = self.create()?;
        let active = scoped(Step::Address, target.address, source).and_then(|()| {
            id.resolve_addr(source, target.address, self.time_left(until))
                .map_err(|error| self.refused(Step::Address, error))
        });
        Ok(match active {
            Ok(()) => Probe::Active(ActiveProbe {
                id,
                step: Step::Address,
                target,
                until,
                advised: source.is_some() && source == target.advised_source,
            }),
            Err(reason) => Probe::done(Err(reason)),
        })
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

    fn handle_event(&self, probes: &mut [Probe<'_>], event: &Event) -> Result<(), Error> {
        for probe in probes {
            match probe {
                Probe::Active(active) if *event.id() == active.id => {
                    if let Some(next) = self.progress(active, event)? {
                        *probe = next;
                    }
                    break;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Processes an event of an active probe. Returns the next state if it changes.
    fn progress<'target>(
        &self,
        active: &mut ActiveProbe<'target>,
        event: &Event,
    ) -> Result<Option<Probe<'target>>, Error> {
        let answer = match (event.failure(), event.kind()) {
            (Some(_), _) if active.advised && active.step == Step::Address => {
                let probe = self.start_from(active.target.source, active.target, active.until);
                return probe.map(Some);
            }
            (Some(failure), _) => Err(self.explained(
                failure.raw_os_error(),
                Unreachable {
                    step: active.step,
                    reason: Reason::Failed(failure),
                },
            )),
            (None, EventKind::AddrResolved) if self.with_routes => match self.start_route(active) {
                Ok(()) => {
                    active.step = Step::Route;
                    return Ok(None);
                }
                Err(error) => Err(no_route(&active.id, error)),
            },
            (None, EventKind::AddrResolved | EventKind::RouteResolved) => self.query(&active.id),
            (None, _) => return Ok(None),
        };
        Ok(Some(Probe::done(answer)))
    }

    /// Sets the known path records if the kernel accepts them, otherwise resolves the route.
    fn start_route(&self, active: &ActiveProbe<'_>) -> Result<(), Error> {
        let route = settable(&active.target.route);
        if !route.is_empty() && active.id.set_ib_path(route).is_ok() {
            return Ok(());
        }
        active.id.resolve_route(self.time_left(active.until))
    }

    /// Queries the addresses, device and path records of an id.
    fn query(&self, id: &CmId) -> ProbeResult {
        self.try_query(id)
            .map_err(Unreachable::refused(Step::Query))
    }

    fn try_query(&self, id: &CmId) -> Result<Reachable, Error> {
        let addresses = id.addresses()?;
        let via = via(id)?;
        let is_routed = self.with_routes && addresses.destination.is_some();
        let path_records = if is_routed && via.is_some() {
            id.path_records()?.to_vec()
        } else {
            Vec::new()
        };
        Ok(Reachable {
            source: addresses.source,
            route: Route { via, path_records },
        })
    }

    fn deadline(&self) -> Deadline {
        self.until.map_or(Deadline::Never, Deadline::At)
    }

    /// The time left for the kernel, which counts in milliseconds and rejects 0.
    fn time_left(&self, until: Option<Instant>) -> Duration {
        let least = Duration::from_millis(1);
        until.map_or(NO_TIMEOUT, |until| {
            until
                .saturating_duration_since(self.channel.now())
                .clamp(least, NO_TIMEOUT)
        })
    }
}

/// The device and port of an id, without the device's name; `None` if it has no device.
pub(crate) fn via(id: &IdHandle) -> Result<Option<Via>, Error> {
    let addresses = id.addresses()?;
    let Some(device) = addresses.device else {
        return Ok(None);
    };
    let gids = id.gids()?;
    Ok(Some(Via {
        device,
        device_name: None,
        transport: Transport::Unknown,
        port: addresses.port_number,
        source_gid: gids.source,
        destination_gid: gids.destination,
    }))
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

/// Whether the address is link-local, unicast or multicast.
fn is_of_one_link(address: CmAddr) -> bool {
    let group = match address {
        CmAddr::V6(v6) => v6.ip().segments()[0] & 0xff0f == 0xff02,
        _ => false,
    };
    group || address.is_link_local()
}

/// Checks that a link-local address has an interface, by its own scope id or the
/// source's. The kernel would choose one.
fn scoped(step: Step, address: CmAddr, source: Option<CmAddr>) -> Result<(), Unreachable> {
    let scope_id = source.map_or(0, |source| source.scope_id());
    if is_of_one_link(address) && address.scope_id() == 0 && scope_id == 0 {
        return Err(Unreachable {
            step,
            reason: Reason::NoScope,
        });
    }
    Ok(())
}

fn is_active(probe: &Probe<'_>) -> bool {
    matches!(probe, Probe::Active(_))
}

fn result(probe: Probe<'_>) -> ProbeResult {
    match probe {
        Probe::Done(answer) => *answer,
        Probe::Active(ActiveProbe { step, .. }) => deadline_passed(step),
        Probe::Pending(_) => deadline_passed(Step::Address),
    }
}

fn deadline_passed(step: Step) -> ProbeResult {
    Err(Unreachable {
        step,
        reason: Reason::Deadline,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
