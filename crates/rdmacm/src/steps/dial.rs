//! From a name to a connection, over every address and attempt.

use std::sync::Arc;

use rdmacm_addrinfo::{Directory, Hints, parse_numeric};
use rdmacm_core::{Deadline, QpType, QueuePair};

use super::race::{Runner, race};
use super::{Attempt, Established, Routed, Way, connect, resolve};
use crate::error::{Cause, Result, Target};
use crate::hub::{Hub, elsewhere, sleep_until};
use crate::plan::Plan;
use crate::queue_pairs::QueuePairs;
use crate::step::Step;

/// Whom to connect to.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// A node and a service, as the system's resolver knows them.
    Name { node: String, service: String },
    /// These addresses.
    Ways(Vec<Way>),
}

impl Peer {
    pub(crate) fn target(&self) -> Target {
        match self {
            Self::Name { node, service } => Target::name(format!("{node}:{service}")),
            Self::Ways(ways) => match ways.as_slice() {
                [way] => way.destination.into(),
                _ => Target::default(),
            },
        }
    }
}

/// Everything that is tried, and by what.
#[derive(Debug)]
pub(crate) struct Dial<'a> {
    pub(crate) hub: &'a Arc<Hub>,
    pub(crate) directory: &'a Directory,
    pub(crate) peer: &'a Peer,
    pub(crate) plan: &'a Plan,
}

/// How an attempt at one address is started.
pub(crate) type Start<'a, T> = &'a (dyn Fn(Attempt, Way) -> Runner<'a, T> + Send + Sync + 'a);

impl Dial<'_> {
    /// The first address that resolves.
    pub(crate) async fn resolve(&self) -> Result<Routed> {
        self.first(&|attempt, way| {
            Box::pin(async move { resolve(&attempt, self.plan, &way).await })
        })
        .await
    }

    /// The first address that connects, with a queue pair made for it.
    pub(crate) async fn connect<P: QueuePairs>(
        &self,
        queue_pairs: &P,
    ) -> Result<(Established, Arc<P::QueuePair>)> {
        self.first(&|attempt, way| Box::pin(self.one(attempt, way, queue_pairs)))
            .await
    }

    async fn one<P: QueuePairs>(
        &self,
        attempt: Attempt,
        way: Way,
        queue_pairs: &P,
    ) -> Result<(Established, Arc<P::QueuePair>)> {
        let routed = resolve(&attempt, self.plan, &way).await?;
        let made = queue_pairs.make(routed.tracked.id());
        let step = Step::QueuePair;
        let queue_pair = made
            .map(Arc::new)
            .map_err(|error| attempt.fail_on(routed.tracked.id(), step, Cause::QueuePair(error)))?;
        let shared: Arc<dyn QueuePair> = queue_pair.clone();
        let param = self.plan.conn_param();
        let established = connect(attempt, routed, shared, param).await?;
        Ok((established, queue_pair))
    }

    /// Races the addresses, as often as the policy says.
    pub(crate) async fn first<T: Send>(&self, start: Start<'_, T>) -> Result<T> {
        let (hub, plan) = (self.hub, self.plan);
        let until = plan.deadline.until(hub.now());
        let whole = Attempt::new(hub, until, self.peer.target());
        let ways = self.ways(&whole).await?;
        let mut made = 0;
        loop {
            made += 1;
            let attempt = whole.limited(plan.retry.limit());
            let runners = ways
                .iter()
                .map(|way| start(attempt.at(way.destination), way.clone()))
                .collect();
            let outcome = race(hub, plan.stagger, runners).await;
            let outcome = outcome.unwrap_or_else(|| {
                let cause = Cause::NoAddress;
                Err(whole.fail(Step::LookUp, cause))
            });
            let error = match outcome {
                Ok(found) => return Ok(found),
                Err(error) => error.after(made, whole.elapsed()),
            };
            let Some(pause) = plan.retry.pause(made, &error) else {
                return Err(error);
            };
            let Some(next) = hub.now().checked_add(pause) else {
                return Err(error);
            };
            if until.is_some_and(|until| until <= next) {
                return Err(error);
            }
            let slept = sleep_until(hub, next).await;
            slept.map_err(|error| whole.fail(Step::Connect, error))?;
        }
    }

    /// The ways to the peer, by the attempt's end.
    async fn ways(&self, attempt: &Attempt) -> Result<Vec<Way>> {
        let (node, service) = match self.peer {
            Peer::Ways(ways) => return Ok(ways.clone()),
            Peer::Name { node, service } => (node.clone(), service.clone()),
        };
        // Counted from now by the system's clock: name servers know no other.
        let left = attempt.time_left().map_or(Deadline::Never, Deadline::After);
        let hints = match self.plan.options.qp_type {
            QpType::UD => Hints::ud(),
            _ => Hints::rc(),
        };
        let hints = hints.deadline(left);
        let directory = self.directory.clone();
        let look_up = move || directory.addresses(&*node, &*service, &hints);
        // Figures are read here; a name server may keep its caller waiting.
        let found = if self.is_numeric() {
            look_up()
        } else {
            let found = elsewhere(self.hub, attempt.until, look_up).await;
            found.ok_or_else(|| attempt.fail(Step::LookUp, Cause::Deadline))?
        };
        let found = found.map_err(|error| attempt.fail(Step::LookUp, Cause::name(error)))?;
        Ok(found.into_iter().map(Way::from).collect())
    }

    fn is_numeric(&self) -> bool {
        match self.peer {
            Peer::Name { node, service } => {
                parse_numeric(node).is_some() && service.parse::<u16>().is_ok()
            }
            Peer::Ways(_) => true,
        }
    }
}
