//! Asking the kernel about all candidates, as many at once as one caller should.

use std::time::{Duration, Instant};

use rdmacm_core::{
    CmAddr, CmId, Deadline, Error, Event, EventChannel, EventKind, IdHandle, PortSpace, Transport,
};

use crate::kind::Kind;
use crate::lead::Lead;
use crate::route::{Route, Via, settable};
use crate::unreachable::{Reason, Step, Unreachable};

/// What the kernel says about one candidate: the address to start from and the
/// way, or why there is none.
pub(crate) type Answer = Result<Found, Unreachable>;

/// A way to a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) source: Option<CmAddr>,
    pub(crate) route: Route,
}

/// The kernel's longest timeout stands for "as long as it takes".
const NO_TIMEOUT: Duration = Duration::from_millis(0x7fff_ffff);

/// How many candidates are asked about at a time: each takes an id of the kernel, and
/// its neighbour a packet or two, and how many there are is a name server's to say.
const AT_A_TIME: usize = 64;

/// Questions to the kernel that share a channel, a kind and a deadline, which
/// is counted by the channel's clock.
pub(crate) struct Inquiry<'channel> {
    pub(crate) channel: &'channel EventChannel,
    pub(crate) kind: Kind,
    pub(crate) with_routes: bool,
    pub(crate) until: Option<Instant>,
}

/// Where the question about one candidate stands.
enum Question<'lead> {
    Waiting(&'lead Lead),
    Asked(Asked<'lead>),
    Answered(Box<Answer>),
}

/// A question that the kernel works on.
struct Asked<'lead> {
    id: CmId,
    step: Step,
    lead: &'lead Lead,
    /// When the next in line has its turn.
    until: Option<Instant>,
    /// Whether it starts from where the lead advises.
    advised: bool,
}

impl Question<'_> {
    fn answered(answer: Answer) -> Self {
        Self::Answered(Box::new(answer))
    }
}

impl Inquiry<'_> {
    /// Asks about every destination, [`AT_A_TIME`] of them side by side. The answers
    /// come in the order of the leads; those still missing at the deadline say so.
    pub(crate) fn destinations(&self, leads: &[Lead]) -> Result<Vec<Answer>, Error> {
        let share = self.share(leads.len());
        let mut questions: Vec<_> = leads.iter().map(Question::Waiting).collect();
        loop {
            self.begin_more(&mut questions, share)?;
            if !questions.iter().any(is_open) {
                break;
            }
            match self.channel.next_event(self.deadline()) {
                Ok(event) => self.hear(&mut questions, &event)?,
                Err(Error::DeadlinePassed) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(questions.into_iter().map(end).collect())
    }

    /// Asks about an address to listen on.
    pub(crate) fn local(&self, address: CmAddr) -> Result<Answer, Error> {
        let id = self.create()?;
        // Port 0: a server that runs already, or a privileged port, is no
        // obstacle to knowing the device.
        let bound = scoped(Step::Bind, address, None).and_then(|()| {
            id.bind(address.with_port(0))
                .map_err(|error| self.refused(Step::Bind, error))
        });
        Ok(bound.and_then(|()| self.look(&id)))
    }

    /// The time that each of so many has where not all are asked at once, so that who
    /// is silent does not take the time of those behind.
    fn share(&self, leads: usize) -> Option<Duration> {
        let rounds = u32::try_from(leads.div_ceil(AT_A_TIME)).unwrap_or(u32::MAX);
        let left = self.until?.saturating_duration_since(self.channel.now());
        (rounds > 1).then(|| left / rounds)
    }

    /// Begins with those that wait, in their order, while there is room.
    fn begin_more(
        &self,
        questions: &mut [Question<'_>],
        share: Option<Duration>,
    ) -> Result<(), Error> {
        let mut room =
            AT_A_TIME.saturating_sub(questions.iter().filter(|one| is_open(one)).count());
        for question in questions {
            if room == 0 {
                break;
            }
            if let Question::Waiting(lead) = *question {
                let turn = share.and_then(|share| self.channel.now().checked_add(share));
                *question = self.begin(lead, turn.or(self.until))?;
                room -= usize::from(is_open(question));
            }
        }
        Ok(())
    }

    /// Advice that the kernel does not follow counts as none.
    fn begin<'lead>(
        &self,
        lead: &'lead Lead,
        until: Option<Instant>,
    ) -> Result<Question<'lead>, Error> {
        if lead.advised_source.is_some() {
            let question = self.begin_from(lead.advised_source, lead, until)?;
            if is_open(&question) {
                return Ok(question);
            }
        }
        self.begin_from(lead.source, lead, until)
    }

    fn begin_from<'lead>(
        &self,
        source: Option<CmAddr>,
        lead: &'lead Lead,
        until: Option<Instant>,
    ) -> Result<Question<'lead>, Error> {
        // The port is added to the result afterwards: one that is in use now
        // would look like an error.
        let source = source.map(|source| source.with_port(0));
        let id = self.create()?;
        let asked = scoped(Step::Address, lead.address, source).and_then(|()| {
            id.resolve_addr(source, lead.address, self.time_left(until))
                .map_err(|error| self.refused(Step::Address, error))
        });
        Ok(match asked {
            Ok(()) => Question::Asked(Asked {
                id,
                step: Step::Address,
                lead,
                until,
                advised: source.is_some() && source == lead.advised_source,
            }),
            Err(reason) => Question::answered(Err(reason)),
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

    /// The kernel's one answer to an IPoIB id on an interface that is none.
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

    fn hear(&self, questions: &mut [Question<'_>], event: &Event) -> Result<(), Error> {
        for question in questions {
            match question {
                Question::Asked(asked) if *event.id() == asked.id => {
                    if let Some(next) = self.progress(asked, event)? {
                        *question = next;
                    }
                    break;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes the next step, unless this event changes the question itself.
    fn progress<'lead>(
        &self,
        asked: &mut Asked<'lead>,
        event: &Event,
    ) -> Result<Option<Question<'lead>>, Error> {
        let answer = match (event.failure(), event.kind()) {
            (Some(_), _) if asked.advised && asked.step == Step::Address => {
                let question = self.begin_from(asked.lead.source, asked.lead, asked.until);
                return question.map(Some);
            }
            (Some(failure), _) => Err(self.explained(
                failure.raw_os_error(),
                Unreachable {
                    step: asked.step,
                    reason: Reason::Failed(failure),
                },
            )),
            (None, EventKind::AddrResolved) if self.with_routes => match self.begin_route(asked) {
                Ok(()) => {
                    asked.step = Step::Route;
                    return Ok(None);
                }
                Err(error) => Err(no_route(&asked.id, error)),
            },
            (None, EventKind::AddrResolved | EventKind::RouteResolved) => self.look(&asked.id),
            (None, _) => return Ok(None),
        };
        Ok(Some(Question::answered(answer)))
    }

    /// With the route that is known, if the kernel takes it.
    fn begin_route(&self, asked: &Asked<'_>) -> Result<(), Error> {
        let route = settable(&asked.lead.route);
        if !route.is_empty() && asked.id.set_ib_path(route).is_ok() {
            return Ok(());
        }
        asked.id.resolve_route(self.time_left(asked.until))
    }

    /// What the kernel has found out about an id.
    fn look(&self, id: &CmId) -> Answer {
        self.try_look(id).map_err(Unreachable::refused(Step::Query))
    }

    fn try_look(&self, id: &CmId) -> Result<Found, Error> {
        let addresses = id.addresses()?;
        let via = via(id)?;
        let is_routed = self.with_routes && addresses.destination.is_some();
        let path_records = if is_routed && via.is_some() {
            id.path_records()?.to_vec()
        } else {
            Vec::new()
        };
        Ok(Found {
            source: addresses.source,
            route: Route { via, path_records },
        })
    }

    fn deadline(&self) -> Deadline {
        self.until.map_or(Deadline::Never, Deadline::At)
    }

    /// What is left for the kernel, which counts in milliseconds and takes none
    /// at all for a mistake.
    fn time_left(&self, until: Option<Instant>) -> Duration {
        let least = Duration::from_millis(1);
        until.map_or(NO_TIMEOUT, |until| {
            until
                .saturating_duration_since(self.channel.now())
                .clamp(least, NO_TIMEOUT)
        })
    }
}

/// The device and port of an id, its name yet to be told; `None` without one.
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

/// Without an interface RoCE has no route, and InfiniBand's addresses name none.
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

/// Link-local, of one host or of a group.
fn is_of_one_link(address: CmAddr) -> bool {
    let group = match address {
        CmAddr::V6(v6) => v6.ip().segments()[0] & 0xff0f == 0xff02,
        _ => false,
    };
    group || address.is_link_local()
}

/// A link-local address means nothing without an interface, which its own scope
/// id names or the source's; the kernel would try one of its choice.
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

fn is_open(question: &Question<'_>) -> bool {
    matches!(question, Question::Asked(_))
}

fn end(question: Question<'_>) -> Answer {
    match question {
        Question::Answered(answer) => *answer,
        Question::Asked(Asked { step, .. }) => late(step),
        Question::Waiting(_) => late(Step::Address),
    }
}

fn late(step: Step) -> Answer {
    Err(Unreachable {
        step,
        reason: Reason::Deadline,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_one_link_needs_a_scope() {
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
