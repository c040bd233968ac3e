//! Waiting for peers.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rdmacm_core::{CmAddr, CmId, Deadline, Event, IdHandle};

use super::{Incoming, Stopper};
use crate::error::{Cause, Error, Result, Target};
use crate::hub::{Mailbox, Tracked, block_on};
#[cfg(feature = "verbs")]
use crate::messages::MessageOptions;
use crate::mode::{Async, Blocking, Mode};
use crate::node::Node;
use crate::reactor::Runtime;
use crate::step::Step;
use crate::steps::{self, Attempt};

mod options;
mod requests;
mod sockets;

pub use options::ListenerOptions;
pub use requests::Requests;
use sockets::ListenSockets;

/// Waits for peers on an address, or on all of them.
///
/// Connect requests are read as they come, whoever drives the node, and wait in
/// a bounded queue: the kernel counts those it has not handed over against its
/// backlog and drops the rest silently, and their senders lose more than four
/// seconds. A request beyond the queue's room is rejected at once.
///
/// Dropping the listener ends it; requests that wait are rejected, those that
/// were taken live on.
///
/// # siw
/// The kernel's siw closes a listener's TCP socket, and reports it to nobody, if a TCP
/// peer disconnects before siw has accepted its connection; a port scan suffices. While a
/// caller waits for a peer, the listener checks every two seconds whether its socket is
/// still there, and fails with [`Cause::ListenerSocketClosed`] if it is not. A listener on
/// a wildcard address fails once for each device that this happens on, and goes on with the
/// others. Destroying the id of such a listener makes the kernel use freed memory, so
/// dropping the listener leaves the id, with its port, to the end of the process.
/// **The kernel destroys it then and may crash**: to go on serving, listen on another port
/// and let the process run. Devices of other drivers are not checked.
#[doc(alias = "rdma_listen")]
pub struct Listener<M> {
    node: Node<M>,
    ids: Vec<Tracked>,
    sockets: ListenSockets,
    mailbox: Arc<Mailbox>,
    address: CmAddr,
    #[cfg(feature = "verbs")]
    messages: MessageOptions,
}

impl<M: Mode> Listener<M> {
    /// Listens on an address: `10.1.0.7:7471`, `0.0.0.0:7471` for all IPv4
    /// addresses, `[::]:7471` for all addresses of both families. Port 0 takes
    /// one of the kernel's choice.
    ///
    /// # Errors
    /// [`Cause::NotAnAddress`] for a text that is none; [`Step::Listen`] when the
    /// kernel refuses.
    pub fn bind<A>(address: A) -> Result<Self>
    where
        A: TryInto<CmAddr>,
    {
        Self::options().bind(address)
    }

    /// Listens with choices of the caller's.
    #[must_use]
    pub fn options() -> ListenerOptions<M> {
        ListenerOptions::new()
    }

    fn open<A>(options: ListenerOptions<M>, address: A) -> Result<Self>
    where
        A: TryInto<CmAddr>,
    {
        let node = options.node.map_or_else(Node::open, Ok)?;
        let attempt = Attempt::new(&node.hub, None, Target::default());
        let address = address
            .try_into()
            .map_err(|_| attempt.fail(Step::Listen, Cause::NotAnAddress))?;
        let mailbox = Mailbox::with_room(options.room);
        let attempt = attempt.at(address);
        let (ids, backlog) = (options.id, options.backlog);
        let ids = steps::listen(&attempt, address, ids, backlog, &mailbox)?;
        let port = match (address.port(), ids.first()) {
            (0, Some(first)) => {
                let port = first.id().local_port();
                port.map_err(|error| attempt.fail(Step::Listen, error))?
            }
            (port, _) => port,
        };
        let address = address.with_port(port);
        let sockets = ListenSockets::of(&node.hub, &ids);
        Ok(Self {
            node,
            ids,
            sockets,
            mailbox,
            address,
            #[cfg(feature = "verbs")]
            messages: options.messages,
        })
    }

    /// The address it listens on, with its port.
    #[must_use]
    pub fn local_addr(&self) -> CmAddr {
        self.address
    }

    /// Its ids: two for `[::]`, one for each family, otherwise one.
    pub fn ids(&self) -> impl Iterator<Item = &IdHandle> {
        self.ids.iter().map(Tracked::id)
    }

    /// Stops it from another thread or task. Whoever waits for a peer is told,
    /// once the requests that are there have been taken. New ones are rejected as
    /// they are read, by whoever drives the node, and all with the listener's end.
    pub fn stop(&self) {
        self.mailbox.stop();
    }

    /// Stops it later, from wherever the value goes.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper::new(&self.mailbox)
    }

    /// Moves the listener to another node, with the requests that wait, read or
    /// not. Peers accepted before stay where they are.
    ///
    /// # Errors
    /// [`Step::Migrate`]: the kernel refused, and the listener is where it was.
    #[doc(alias = "rdma_migrate_id")]
    pub fn migrate(&mut self, to: &Node<M>) -> Result<()> {
        let attempt = self.attempt();
        let mut moved = Ok(());
        for id in &mut self.ids {
            moved = moved.and_then(|()| id.migrate(&to.hub));
        }
        if let Err(error) = moved {
            for id in &mut self.ids {
                // Those that moved; the others are there.
                let _ = id.migrate(&self.node.hub);
            }
            return Err(attempt.fail(Step::Migrate, Cause::from(error)));
        }
        self.node = to.clone();
        Ok(())
    }

    fn attempt(&self) -> Attempt {
        Attempt::new(&self.node.hub, None, self.address.into())
    }

    async fn accept_async(&self, deadline: Deadline) -> Result<Incoming<M>> {
        let attempt = self.attempt();
        let until = deadline.until(self.node.hub.now());
        let (request, child) = self.next_request(&attempt, until).await?;
        let tracked = Tracked::new(&self.node.hub, child, Mailbox::new());
        let incoming = Incoming::new(tracked, request);
        #[cfg(feature = "verbs")]
        let incoming = incoming.messages(self.messages);
        Ok(incoming)
    }

    /// The next request, or the failure that none can come any more.
    async fn next_request(
        &self,
        attempt: &Attempt,
        until: Option<Instant>,
    ) -> Result<(Box<Event>, CmId)> {
        loop {
            let check = self.sockets.next_check();
            let by = [until, check].into_iter().flatten().min();
            let error = match steps::next_request(attempt, &self.mailbox, by).await {
                Ok(request) => return Ok(request),
                Err(error) => error,
            };
            let now = self.node.hub.now();
            let is_due = check.is_some_and(|check| check <= now);
            if !is_due || !matches!(error.cause(), Cause::Deadline) {
                return Err(error);
            }
            let checked = self.sockets.check(now);
            checked.map_err(|cause| attempt.fail(Step::Accept, cause))?;
        }
    }
}

impl<M> Drop for Listener<M> {
    fn drop(&mut self) {
        let unsafe_ids = self.sockets.unsafe_ids();
        for (position, tracked) in self.ids.drain(..).enumerate() {
            if unsafe_ids.contains(&position) {
                tracked.leak();
            }
        }
    }
}

impl Listener<Blocking> {
    /// Waits for the next peer.
    ///
    /// # Errors
    /// [`Cause::Deadline`] when none came, [`Cause::Stopped`],
    /// [`Cause::ListenerSocketClosed`].
    #[doc(alias = "rdma_get_request")]
    pub fn accept(&self, deadline: impl Into<Deadline>) -> Result<Incoming<Blocking>> {
        block_on(&self.node.hub, self.accept_async(deadline.into()))
    }

    /// Peers as they come, until the listener is stopped.
    #[must_use]
    pub fn incoming(&self) -> Requests<'_, Blocking> {
        Requests::new(self)
    }
}

impl<R: Runtime> Listener<Async<R>> {
    /// Waits for the next peer. Any number of tasks may; each peer goes to one of
    /// them, and dropping the future loses none.
    ///
    /// # Errors
    /// [`Cause::Deadline`] when none came, [`Cause::Stopped`],
    /// [`Cause::ListenerSocketClosed`].
    #[doc(alias = "rdma_get_request")]
    pub async fn accept(&self, deadline: impl Into<Deadline>) -> Result<Incoming<Async<R>>> {
        self.accept_async(deadline.into()).await
    }

    /// Peers as they come, until the listener is stopped: a `Stream` with the
    /// feature `stream`. As it keeps its place among those who wait between polls,
    /// poll it or drop it: one that is kept and not polled may hold up others of
    /// the same node.
    #[must_use]
    pub fn incoming(&self) -> Requests<'_, Async<R>> {
        Requests::new(self)
    }
}

fn is_stopped(error: &Error) -> bool {
    matches!(error.cause(), Cause::Stopped)
}

impl<M> fmt::Debug for Listener<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
