//! Asking the kernel about all candidates at once.

use std::time::{Duration, Instant};

use rdmacm_core::{
    CmAddr, CmId, Deadline, Error, Event, EventChannel, EventKind, PortSpace, Transport,
};

use crate::kind::Kind;
use crate::route::{Route, Via};
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

/// Questions to the kernel that share a channel, a kind and a deadline, which
/// is counted by the channel's clock.
pub(crate) struct Inquiry<'channel> {
    pub(crate) channel: &'channel EventChannel,
    pub(crate) kind: Kind,
    pub(crate) with_routes: bool,
    pub(crate) until: Option<Instant>,
}

/// Where the question about one candidate stands.
enum Question {
    Asked { id: CmId, step: Step },
    Answered(Box<Answer>),
}

impl Question {
    fn answered(answer: Answer) -> Self {
        Self::Answered(Box::new(answer))
    }
}

impl Inquiry<'_> {
    /// Asks about every destination side by side. The answers come in the order
    /// of the destinations; those still missing at the deadline say so.
    pub(crate) fn destinations(
        &self,
        source: Option<CmAddr>,
        destinations: &[CmAddr],
    ) -> Result<Vec<Answer>, Error> {
        // The port is added to the result afterwards: one that is in use now
        // would look like an error.
        let source = source.map(|source| source.with_port(0));
        let mut questions = destinations
            .iter()
            .map(|destination| self.begin(source, *destination))
            .collect::<Result<Vec<_>, Error>>()?;
        while questions.iter().any(is_open) {
            match self.channel.next_event(self.deadline()) {
                Ok(event) => self.hear(&mut questions, &event),
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

    fn begin(&self, source: Option<CmAddr>, destination: CmAddr) -> Result<Question, Error> {
        let id = self.create()?;
        let asked = scoped(Step::Address, destination, source).and_then(|()| {
            id.resolve_addr(source, destination, self.time_left())
                .map_err(|error| self.refused(Step::Address, error))
        });
        Ok(match asked {
            Ok(()) => Question::Asked {
                id,
                step: Step::Address,
            },
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

    fn hear(&self, questions: &mut [Question], event: &Event) {
        let concerned = questions
            .iter_mut()
            .find(|question| matches!(question, Question::Asked { id, .. } if *event.id() == *id));
        let Some(question) = concerned else { return };
        let Question::Asked { id, step } = question else {
            return;
        };
        match self.progress(id, *step, event) {
            Some(Ok(next)) => *step = next,
            Some(Err(answer)) => *question = Question::Answered(answer),
            None => {}
        }
    }

    /// The next step, the answer, or nothing new.
    fn progress(&self, id: &CmId, step: Step, event: &Event) -> Option<Result<Step, Box<Answer>>> {
        let answer = match (event.failure(), event.kind()) {
            (Some(failure), _) => Err(self.explained(
                failure.raw_os_error(),
                Unreachable {
                    step,
                    reason: Reason::Failed(failure),
                },
            )),
            (None, EventKind::AddrResolved) if self.with_routes => {
                match id.resolve_route(self.time_left()) {
                    Ok(()) => return Some(Ok(Step::Route)),
                    Err(error) => Err(Unreachable::refused(Step::Route)(error)),
                }
            }
            (None, EventKind::AddrResolved | EventKind::RouteResolved) => self.look(id),
            (None, _) => return None,
        };
        Some(Err(Box::new(answer)))
    }

    /// What the kernel has found out about an id.
    fn look(&self, id: &CmId) -> Answer {
        self.try_look(id).map_err(Unreachable::refused(Step::Query))
    }

    fn try_look(&self, id: &CmId) -> Result<Found, Error> {
        let addresses = id.addresses()?;
        let Some(device) = addresses.device else {
            return Ok(Found {
                source: addresses.source,
                route: Route::default(),
            });
        };
        let gids = id.gids()?;
        let path_records = if self.with_routes && addresses.destination.is_some() {
            id.path_records()?.to_vec()
        } else {
            Vec::new()
        };
        Ok(Found {
            source: addresses.source,
            route: Route {
                via: Some(Via {
                    device,
                    device_name: None,
                    transport: Transport::Unknown,
                    port: addresses.port_number,
                    source_gid: gids.source,
                    destination_gid: gids.destination,
                }),
                path_records,
            },
        })
    }

    fn deadline(&self) -> Deadline {
        self.until.map_or(Deadline::Never, Deadline::At)
    }

    /// What is left for the kernel, which counts in milliseconds and takes none
    /// at all for a mistake.
    fn time_left(&self) -> Duration {
        let least = Duration::from_millis(1);
        self.until.map_or(NO_TIMEOUT, |until| {
            until
                .saturating_duration_since(self.channel.now())
                .clamp(least, NO_TIMEOUT)
        })
    }
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

fn is_open(question: &Question) -> bool {
    matches!(question, Question::Asked { .. })
}

fn end(question: Question) -> Answer {
    match question {
        Question::Answered(answer) => *answer,
        Question::Asked { step, .. } => Err(Unreachable {
            step,
            reason: Reason::Deadline,
        }),
    }
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
