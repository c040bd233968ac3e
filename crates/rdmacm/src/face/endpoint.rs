//! Endpoints: an id with a queue pair of the caller's choice.

use std::io;

use rdmacm_addrinfo::AddrInfo;
use rdmacm_core::{CmAddr, ConnParam, Deadline, IdHandle, QpType};
use rdmacm_verbs::{Context, Pieces, QpOptions, QueuePair, Refused, WorkId};

use super::{Connection, Connector, Incoming, Listener, Resolved};
use crate::error::{Cause, Error, Result, Target};
use crate::mode::{Async, Blocking, Mode};
use crate::reactor::Runtime;
use crate::step::Step;
use crate::steps::Way;

/// An id that is about to be connected, and its queue pair, made as [`QpOptions`] say:
/// of a peer that is resolved (`Endpoint<Resolved<M>>`), or of one that wants to connect
/// (`Endpoint<Incoming<M>>`).
///
/// The queue pair is in INIT: what is [posted](Self::post_receive) to receive into now
/// the peer's first messages find. Connected, it is a [`Connection`] of that queue
/// pair.
///
/// On iWARP the connecting side speaks first. siw answers it before it listens to the
/// connection, and overlooks what arrives in between until more does: a client that
/// sends one message and waits does well to send something more, an empty write for
/// example. Connections that carry messages do so by themselves.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use rdmacm::addrinfo::{Hints, resolve};
/// use rdmacm::core::{ConnParam, QpType};
/// use rdmacm::Endpoint;
/// use rdmacm::verbs::QueuePair;
///
/// let candidates = resolve("storage-7", "7471", &Hints::rc())?;
/// let info = candidates.first().ok_or("no address")?;
/// let options = QueuePair::options(QpType::RC).waitable();
/// let endpoint = Endpoint::to(info, &options)?;
/// let room = endpoint.queue_pair().protection_domain().allocate(16)?;
/// endpoint.post_receive(room)?;
/// let connection = endpoint.connect(ConnParam::new())?;
/// let mut message = connection.queue_pair().protection_domain().allocate(16)?;
/// message.fill(7);
/// connection.post_send(message)?;
/// let sent = connection.next_sent(Duration::from_secs(1))?;
/// let received = connection.next_received(Duration::from_secs(1))?;
/// println!("{} bytes", received.result?.bytes);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[doc(alias = "rdma_create_ep", alias = "rdma_destroy_ep")]
pub struct Endpoint<S> {
    queue_pair: QueuePair,
    step: S,
}

impl<S> Endpoint<S> {
    /// The queue pair.
    #[must_use]
    pub fn queue_pair(&self) -> &QueuePair {
        &self.queue_pair
    }

    /// The id, resolved or with its request: what it is asked for.
    #[must_use]
    pub fn step(&self) -> &S {
        &self.step
    }

    /// Posts memory to receive a message into, before the peer can send one: to the
    /// queue pair, or to the shared queue it receives from.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_receive`].
    #[doc(alias = "rdma_post_recv", alias = "rdma_post_recvv")]
    pub fn post_receive(&self, memory: impl Into<Pieces>) -> Result<WorkId, Refused<Pieces>> {
        post_receive(&self.queue_pair, memory)
    }
}

impl Endpoint<Resolved<Blocking>> {
    /// Resolves what [`addrinfo`](crate::addrinfo) found, and makes a queue pair on the
    /// device that leads there.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; [`Step::QueuePair`] for parts
    /// of the options' that are of another device, and for what is no reliable
    /// connection.
    #[doc(alias = "rdma_create_ep")]
    pub fn to(info: &AddrInfo, options: &QpOptions) -> Result<Self> {
        let connector: Connector<Blocking> = connector(info)?;
        Self::resolved(connector.resolve()?, options)
    }

    /// Connects. `param` says what the peer is told; the queue pair's number is filled
    /// in.
    ///
    /// # Errors
    /// Those of [`Resolved::connect_on`].
    #[doc(alias = "rdma_connect")]
    pub fn connect(self, param: ConnParam) -> Result<Connection<QueuePair, Blocking>> {
        self.step.param(param).connect_on(self.queue_pair)
    }
}

impl<R: Runtime> Endpoint<Resolved<Async<R>>> {
    /// Resolves what [`addrinfo`](crate::addrinfo) found, and makes a queue pair on the
    /// device that leads there. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; [`Step::QueuePair`] for parts
    /// of the options' that are of another device, and for what is no reliable
    /// connection.
    #[doc(alias = "rdma_create_ep")]
    pub async fn to(info: &AddrInfo, options: &QpOptions) -> Result<Self> {
        let connector: Connector<Async<R>> = connector(info)?;
        Self::resolved(connector.resolve().await?, options)
    }

    /// Connects. `param` says what the peer is told; the queue pair's number is filled
    /// in. Dropping the future cancels it.
    ///
    /// # Errors
    /// Those of [`Resolved::connect_on`].
    #[doc(alias = "rdma_connect")]
    pub async fn connect(self, param: ConnParam) -> Result<Connection<QueuePair, Async<R>>> {
        self.step.param(param).connect_on(self.queue_pair).await
    }
}

impl<M: Mode> Endpoint<Resolved<M>> {
    /// The same of what is resolved already, by a [`Connector`] with choices of the
    /// caller's.
    ///
    /// # Errors
    /// [`Step::QueuePair`].
    pub fn resolved(step: Resolved<M>, options: &QpOptions) -> Result<Self> {
        let queue_pair = make(step.id(), options)?;
        Ok(Self { queue_pair, step })
    }
}

impl Endpoint<Incoming<Blocking>> {
    /// Accepts the peer. `param` says what it is told; the queue pair's number is
    /// filled in.
    ///
    /// # Errors
    /// Those of [`Incoming::accept_on`].
    #[doc(alias = "rdma_accept")]
    pub fn accept(self, param: ConnParam) -> Result<Connection<QueuePair, Blocking>> {
        self.step.param(param).accept_on(self.queue_pair)
    }
}

impl<R: Runtime> Endpoint<Incoming<Async<R>>> {
    /// Accepts the peer. `param` says what it is told; the queue pair's number is
    /// filled in. Dropping the future rejects it.
    ///
    /// # Errors
    /// Those of [`Incoming::accept_on`].
    #[doc(alias = "rdma_accept")]
    pub async fn accept(self, param: ConnParam) -> Result<Connection<QueuePair, Async<R>>> {
        self.step.param(param).accept_on(self.queue_pair).await
    }
}

impl<M: Mode> Endpoint<Incoming<M>> {
    /// The same of a request that a [`Listener`] got.
    ///
    /// # Errors
    /// [`Step::QueuePair`]; the peer is rejected then.
    pub fn incoming(step: Incoming<M>, options: &QpOptions) -> Result<Self> {
        let queue_pair = make(step.id(), options)?;
        Ok(Self { queue_pair, step })
    }

    /// Rejects the peer, which reads the data with the rejection.
    ///
    /// # Errors
    /// Those of [`Incoming::reject`].
    #[doc(alias = "rdma_reject")]
    pub fn reject(self, private_data: &[u8]) -> Result<()> {
        self.step.reject(private_data)
    }
}

/// Listens, and makes a queue pair for each peer that asks.
#[derive(Debug)]
#[doc(alias = "rdma_create_ep", alias = "rdma_listen")]
pub struct ListeningEndpoint<M> {
    listener: Listener<M>,
    options: QpOptions,
}

impl<M: Mode> ListeningEndpoint<M> {
    /// Listens on the source of a passive result of [`addrinfo`](crate::addrinfo).
    ///
    /// # Errors
    /// [`Step::Listen`]: see [`Listener::bind`].
    pub fn on(info: &AddrInfo, options: &QpOptions) -> Result<Self> {
        check(info)?;
        let source = info.source.ok_or_else(|| refuse(Step::Listen, NO_SOURCE))?;
        let listener = Listener::options().port_space(info.port_space);
        Ok(Self::of(listener.bind(source)?, options))
    }

    /// The same with a listener of the caller's.
    #[must_use]
    pub fn of(listener: Listener<M>, options: &QpOptions) -> Self {
        let options = options.clone();
        Self { listener, options }
    }

    /// The listener.
    #[must_use]
    pub fn listener(&self) -> &Listener<M> {
        &self.listener
    }

    /// Where it listens, with its port.
    #[must_use]
    pub fn local_addr(&self) -> CmAddr {
        self.listener.local_addr()
    }
}

impl ListeningEndpoint<Blocking> {
    /// Waits for the next peer, and makes its queue pair.
    ///
    /// # Errors
    /// Those of [`Listener::accept`]; [`Step::QueuePair`], and the peer is rejected.
    #[doc(alias = "rdma_get_request")]
    pub fn next_request(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<Endpoint<Incoming<Blocking>>> {
        Endpoint::incoming(self.listener.accept(deadline)?, &self.options)
    }
}

impl<R: Runtime> ListeningEndpoint<Async<R>> {
    /// Waits for the next peer, and makes its queue pair. Dropping the future loses
    /// none.
    ///
    /// # Errors
    /// Those of [`Listener::accept`]; [`Step::QueuePair`], and the peer is rejected.
    #[doc(alias = "rdma_get_request")]
    pub async fn next_request(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<Endpoint<Incoming<Async<R>>>> {
        Endpoint::incoming(self.listener.accept(deadline).await?, &self.options)
    }
}

const NO_SOURCE: &str = "a result to listen on has a source";
const NO_DESTINATION: &str = "a result to connect to has a destination";
const NOT_CONNECTED: &str = "only reliable connections are made here";
const ELSEWHERE: &str = "the queue pair's parts are of a device that does not lead there";

fn connector<M: Mode>(info: &AddrInfo) -> Result<Connector<M>> {
    check(info)?;
    let way = Way::of(info).ok_or_else(|| refuse(Step::ResolveAddress, NO_DESTINATION))?;
    Ok(Connector::over(vec![way]))
}

fn check(info: &AddrInfo) -> Result<()> {
    if info.qp_type == QpType::RC {
        return Ok(());
    }
    Err(refuse(Step::QueuePair, NOT_CONNECTED))
}

fn refuse(step: Step, reason: &'static str) -> Error {
    let error = io::Error::new(io::ErrorKind::InvalidInput, reason);
    let cause = Cause::QueuePair(error);
    Error::new(step, Target::default(), std::time::Duration::ZERO, cause)
}

/// Where the queue pair receives from, its own queue or a shared one.
pub(super) fn post_receive(
    queue_pair: &QueuePair,
    memory: impl Into<Pieces>,
) -> Result<WorkId, Refused<Pieces>> {
    match queue_pair.shared_receive_queue() {
        Some(shared) => shared.post_receive(memory),
        None => queue_pair.post_receive(memory),
    }
}

/// A queue pair on the id's device, ready for receives.
fn make(id: &IdHandle, options: &QpOptions) -> Result<QueuePair> {
    let made = try_make(id, options);
    made.map_err(|error| {
        let target = Target::of_id(id, None);
        let cause = Cause::QueuePair(error);
        Error::new(Step::QueuePair, target, std::time::Duration::ZERO, cause)
    })
}

fn try_make(id: &IdHandle, options: &QpOptions) -> io::Result<QueuePair> {
    let device = id.addresses()?.device.ok_or(io::ErrorKind::NotFound)?;
    let queue_pair = match options.context() {
        None => options.create(&Context::open_by_id(device)?)?,
        Some(context) => {
            let same = id.rdma_device()?;
            if same.is_none_or(|device| device.name != context.device_name()) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, ELSEWHERE));
            }
            options.create(context)?
        }
    };
    id.with_queue_pair(&queue_pair).init()?;
    Ok(queue_pair)
}
