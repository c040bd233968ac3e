//! What connectors and listeners share.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use rdmacm_addrinfo::{self as addrinfo, AddrInfo, Directory, Hints};
use rdmacm_core::{ChannelOptions, EventChannel};

use crate::error::{Error, Result, Target};
use crate::hub::{Hub, Sources, elsewhere};
use crate::mode::{Async, Blocking, Mode};
use crate::offload::{MAX_HANDSHAKES, Offload, Threads};
use crate::reactor::Runtime;
use crate::step::Step;

/// What connectors and listeners share: one event channel for all their ids,
/// the resolver of names, and where blocking calls run.
///
/// Cloning it gives another handle to the same. Connectors and listeners that
/// are given none open one of their own.
pub struct Node<M> {
    pub(crate) hub: Arc<Hub>,
    pub(crate) directory: Directory,
    mode: PhantomData<fn() -> M>,
}

impl<M: Mode> Node<M> {
    /// Opens the connection manager. In an asynchronous mode, within the runtime.
    ///
    /// # Errors
    /// [`Step::Open`]: the device cannot be opened, or the runtime does not take
    /// its descriptor.
    pub fn open() -> Result<Self> {
        Self::options().open()
    }

    /// Opens it with choices of the caller's.
    #[must_use]
    pub fn options() -> NodeOptions<M> {
        NodeOptions {
            channel: EventChannel::options(),
            offload: Arc::new(Threads),
            handshakes: MAX_HANDSHAKES,
            directory: Directory::new(),
            mode: PhantomData,
        }
    }
}

impl Node<Blocking> {
    /// Resolves a node and a service to everything RDMA can do with them, see
    /// [`addrinfo::resolve`](crate::addrinfo::resolve): the hints say by when.
    ///
    /// # Errors
    /// Those of [`addrinfo::resolve`](crate::addrinfo::resolve).
    #[doc(alias = "rdma_getaddrinfo")]
    pub fn resolve<'name>(
        &self,
        node: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> addrinfo::Result<Vec<AddrInfo>> {
        self.directory.resolve(node, service, hints)
    }
}

impl<R: Runtime> Node<Async<R>> {
    /// Resolves a node and a service to everything RDMA can do with them, see
    /// [`addrinfo::resolve`](crate::addrinfo::resolve): the hints say by when.
    ///
    /// It is done where the node's [`Offload`] runs what blocks. Dropping the future
    /// gives it up: what is under way ends at the hints' deadline.
    ///
    /// # Errors
    /// Those of [`addrinfo::resolve`](crate::addrinfo::resolve).
    #[doc(alias = "rdma_getaddrinfo")]
    pub async fn resolve<'name>(
        &self,
        node: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> addrinfo::Result<Vec<AddrInfo>> {
        let node = node.into().map(str::to_owned);
        let service = service.into().map(str::to_owned);
        let (directory, hints) = (self.directory.clone(), hints.clone());
        let job = move || directory.resolve(node.as_deref(), service.as_deref(), &hints);
        let found = elsewhere(&self.hub, None, job).await;
        found.unwrap_or(Err(addrinfo::Error::LookupDied))
    }
}

/// How to open a [`Node`].
pub struct NodeOptions<M> {
    channel: ChannelOptions,
    offload: Arc<dyn Offload>,
    handshakes: usize,
    directory: Directory,
    mode: PhantomData<fn() -> M>,
}

impl<M: Mode> NodeOptions<M> {
    /// Opens the event channel with these options.
    #[must_use]
    pub fn channel(mut self, channel: ChannelOptions) -> Self {
        self.channel = channel;
        self
    }

    /// Runs what blocks in the kernel there, instead of on a short-lived thread.
    #[must_use]
    pub fn offload(mut self, offload: Arc<dyn Offload>) -> Self {
        self.offload = offload;
        self
    }

    /// How many of TCP's handshakes may be under way at a time for iWARP connections made
    /// from here: [`MAX_HANDSHAKES`] unless set, at least one. Towards a peer that is not
    /// there each occupies a job of the [`Offload`], an id and a queue pair with its
    /// memory for some two minutes, however soon its caller gives up. One more waits,
    /// until its deadline, and fails with
    /// [`Cause::Handshakes`](crate::Cause::Handshakes) then.
    #[must_use]
    pub fn handshakes(mut self, limit: usize) -> Self {
        self.handshakes = limit;
        self
    }

    /// Asks this directory for names.
    #[must_use]
    pub fn directory(mut self, directory: &Directory) -> Self {
        self.directory = directory.clone();
        self
    }

    /// Opens the connection manager.
    ///
    /// # Errors
    /// Those of [`Node::open`].
    pub fn open(self) -> Result<Node<M>> {
        let channel = self.channel.open().map_err(unopened)?;
        let watched = |error: io::Error| unwatched(&error);
        let sources = Sources::new(&channel).map_err(watched)?;
        let reactor = M::reactor(sources.readiness(&channel)).map_err(watched)?;
        Ok(Node {
            hub: Hub::new(channel, sources, self.offload, self.handshakes, reactor),
            directory: self.directory,
            mode: PhantomData,
        })
    }
}

fn unopened(error: rdmacm_core::Error) -> Error {
    Error::new(Step::Open, Target::default(), Duration::ZERO, error.into())
}

fn unwatched(error: &io::Error) -> Error {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    unopened(rdmacm_core::Error::Wait { errno })
}

impl<M> Clone for Node<M> {
    fn clone(&self) -> Self {
        Self {
            hub: Arc::clone(&self.hub),
            directory: self.directory.clone(),
            mode: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Node<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("hub", &self.hub)
            .finish_non_exhaustive()
    }
}

impl<M> fmt::Debug for NodeOptions<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeOptions")
            .field("channel", &self.channel)
            .field("offload", &self.offload)
            .field("handshakes", &self.handshakes)
            .finish_non_exhaustive()
    }
}
