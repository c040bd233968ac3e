//! From a name to a connection, over all addresses and attempts.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rdmacm_addrinfo::{AddrInfoResolver, Hints, parse_numeric};
use rdmacm_core::{CmAddr, Deadline, QpType, QueuePair};

use super::peer::Peer;
use super::race::race;
use super::{
    ConnectConfig, ConnectTarget, Routed, SourceAddress, handshake, resolve, resolve_address,
};
use crate::attempt::Attempt;
use crate::error::{Cause, Error, Result};
use crate::established::Established;
use crate::event_loop::{EventLoop, sleep_until, spawn_blocking};
use crate::queue_pair_factory::QueuePairFactory;
use crate::stage::Stage;

/// How long a lookup may take once addresses are known.
const NEXT_LOOKUP_LIMIT: Duration = Duration::from_secs(1);

/// How often another id is tried, if TCP uses the port that the kernel chose for the one before: on
/// iWARP, RDMA and TCP count their ports separately, and `CONNECT` needs the same one of both.
const OTHER_PORTS: u32 = 15;

/// All attempts to connect to a peer.
#[derive(Debug)]
pub(crate) struct ConnectAttempts<'a> {
    pub(crate) event_loop: &'a Arc<EventLoop>,
    pub(crate) resolver: &'a AddrInfoResolver,
    pub(crate) peer: &'a Peer,
    pub(crate) config: &'a ConnectConfig,
}

impl ConnectAttempts<'_> {
    /// The first address that resolves.
    pub(crate) fn resolve(&self) -> impl Future<Output = Result<Routed>> {
        let resolve = move |attempt, target| async move {
            let (attempt, target) = (&attempt, &target);
            resolve(attempt, self.config, target).await
        };
        self.first(resolve)
    }

    /// The first address that connects, with a queue pair of its own.
    pub(crate) fn connect<F: QueuePairFactory>(
        &self,
        factory: &F,
    ) -> impl Future<Output = Result<(Established, Arc<F::QueuePair>)>> {
        // No `async fn`, whose future holds each argument twice.
        let connect = move |mut attempt: Attempt, target| async move {
            let resolving = resolve_address(&attempt, self.config, &target).await?;
            let id = resolving.id();
            // No `map_err`: it would move a queue pair, which is large.
            let queue_pair = match factory.create(id) {
                Ok(queue_pair) => Arc::new(queue_pair),
                Err(error) => return Err(attempt.no_queue_pair(id, error)),
            };
            let routed = resolving.resolved_meanwhile(&attempt).await?;
            let shared: Arc<dyn QueuePair> = queue_pair.clone();
            let param = self.config.param.clone();
            let established = handshake(&mut attempt, routed, shared, param).await?;
            Ok((established, queue_pair))
        };
        self.first(connect)
    }

    /// Races the addresses, as often as the retry policy allows. `start` starts an attempt at
    /// one address.
    pub(crate) async fn first<T, F>(&self, start: impl Fn(Attempt, ConnectTarget) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let Self {
            event_loop, config, ..
        } = self;
        let whole = Attempt::until(event_loop, config.deadline, self.peer.target());
        let until = whole.until;
        let mut targets = Cow::default();
        let (mut attempts, mut other_ports) = (0, 0);
        // The limit of an attempt begins when it starts.
        let start = |target: &ConnectTarget| {
            let mut attempt = whole.at_address(target.destination);
            attempt.until = whole.end_within(config.retry.limit());
            start(attempt, target.clone())
        };
        let mut last_error = None;
        loop {
            let looked_up = self.look_up(&whole, &mut targets).await;
            if whole.has_passed() {
                if let Some(error) = last_error {
                    return Err(error);
                }
            }
            let outcome = match looked_up {
                Err(error) => Err(error),
                Ok(()) => match &*targets {
                    [only] => start(only).await,
                    all => {
                        let attempts = all.iter().map(|target| Box::pin(start(target)));
                        let has_passed = || whole.has_passed();
                        let outcome =
                            race(event_loop, self.attempt_delay(all), attempts, has_passed);
                        let outcome = outcome.await;
                        outcome.unwrap_or_else(|| Err(whole.fail(Stage::LookUp, Cause::NoTarget)))
                    }
                },
            };
            let error = match outcome {
                Ok(found) => return Ok(found),
                Err(error) => {
                    let is_cut_short = whole.has_passed() && is_out_of_time(&error);
                    let known = last_error.take().filter(|known: &Error| {
                        // That there was no time is no reason, unless this attempt came further.
                        is_cut_short && known.stage() >= error.stage()
                    });
                    let error = known.unwrap_or(error);
                    error.after(attempts + other_ports + 1, whole.elapsed())
                }
            };
            if other_ports < OTHER_PORTS && self.needs_another_port(&error, &targets) {
                other_ports += 1;
                last_error = Some(error);
                continue;
            }
            attempts += 1;
            let Some(backoff) = config.retry.backoff(attempts, &error) else {
                return Err(error);
            };
            let Some(next) = event_loop.now().checked_add(backoff) else {
                return Err(error);
            };
            if until.is_some_and(|until| until <= next) {
                return Err(error);
            }
            let slept = sleep_until(event_loop, next).await;
            slept.map_err(|error| whole.fail(Stage::Connect, error))?;
            last_error = Some(error);
        }
    }

    /// Whether TCP uses the source port of an id, which the kernel has chosen.
    fn needs_another_port(&self, error: &Error, targets: &[ConnectTarget]) -> bool {
        error.stage() == Stage::Connect && error.is_port_taken() && !self.has_port(targets)
    }

    /// Whether the caller chooses the source port.
    fn has_port(&self, targets: &[ConnectTarget]) -> bool {
        let has_port = |source: CmAddr| source.port() != 0;
        match self.config.source {
            SourceAddress::ByRoute => {
                let mut sources = targets.iter().filter_map(|target| target.source);
                sources.any(has_port)
            }
            _ => self.config.source.has_port(),
        }
    }

    /// The delay between the addresses. From a port of the caller's, each waits until the one
    /// before has failed: the kernel gives a port of an address to one id at a time.
    fn attempt_delay(&self, targets: &[ConnectTarget]) -> Duration {
        if self.has_port(targets) && !self.config.options.reuse_addr {
            return Duration::MAX;
        }
        self.config.attempt_delay
    }

    /// Looks up the peer's addresses: before each attempt, because they may have changed. If
    /// that fails, or takes long, those that were found before still count.
    async fn look_up<'a>(
        &'a self,
        whole: &Attempt,
        targets: &mut Cow<'a, [ConnectTarget]>,
    ) -> Result<()> {
        let mut attempt = whole.clone();
        if !targets.is_empty() {
            attempt.until = whole.end_within(Some(NEXT_LOOKUP_LIMIT));
        }
        match self.targets(&attempt).await {
            Ok(found) => *targets = found,
            Err(error) if targets.is_empty() => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }

    /// The peer's addresses.
    async fn targets(&self, attempt: &Attempt) -> Result<Cow<'_, [ConnectTarget]>> {
        let qp_type = self.config.options.qp_type;
        let (host, service) = match self.peer {
            Peer::Targets(targets) => return Ok(of_type(targets, qp_type)),
            Peer::Unreachable { reason, .. } => {
                let cause = Cause::Unreachable(reason.clone());
                return Err(attempt.fail(Stage::LookUp, cause));
            }
            Peer::Invalid(_) => {
                return Err(attempt.fail(Stage::LookUp, Cause::InvalidAddress));
            }
            Peer::Name { host, service } => (host, service),
        };
        // From now by the system's clock, which is the only one that name servers know.
        let left = Deadline::from(attempt.time_left());
        let hints = match qp_type {
            QpType::UD => Hints::ud(),
            _ => Hints::rc(),
        };
        let hints = hints.deadline(left);
        let is_numeric = parse_numeric(host).is_some() && service.parse::<u16>().is_ok();
        // A numeric address is parsed here; a name server may block.
        let found = if is_numeric {
            self.resolver.addresses(&**host, &**service, &hints)
        } else {
            let (resolver, host, service) = (self.resolver.clone(), host.clone(), service.clone());
            let look_up = move || resolver.addresses(&*host, &*service, &hints);
            let found = spawn_blocking(self.event_loop, attempt.until, Duration::ZERO, look_up);
            let found = found
                .await
                .map_err(|error| attempt.fail(Stage::LookUp, error))?;
            found.unwrap_or_else(|lost| Err(lost.into()))
        };
        let found = found.map_err(|error| attempt.fail(Stage::LookUp, Cause::name(error)))?;
        Ok(found.into_iter().map(ConnectTarget::from).collect())
    }
}

fn is_out_of_time(error: &Error) -> bool {
    matches!(error.cause(), Cause::Deadline | Cause::TooManyHandshakes(_))
}

/// The targets for this type of queue pair.
fn of_type(targets: &[ConnectTarget], qp_type: QpType) -> Cow<'_, [ConnectTarget]> {
    if targets.iter().all(|target| target.is_for(qp_type)) {
        return targets.into();
    }
    let usable = targets.iter().filter(|target| target.is_for(qp_type));
    usable.cloned().collect()
}
