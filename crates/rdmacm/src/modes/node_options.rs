//! How to open a node.

use std::fmt;
use std::io;
use std::sync::Arc;

use rdmacm_addrinfo::AddrInfoResolver;
use rdmacm_core::{ChannelOptions, EventChannel};

use super::Node;
use super::runtime_choice::RuntimeChoice;
use crate::blocking_executor::{BlockingExecutor, DEFAULT_MAX_HANDSHAKES, ThreadExecutor};
use crate::error::{Cause, Error, Result};
use crate::event_loop::{EventLoop, EventLoopParts, Extensions};
use crate::stage::Stage;

/// How to open a [`Node`].
pub struct NodeOptions {
    channel: ChannelOptions,
    executor: Arc<dyn BlockingExecutor>,
    max_handshakes: usize,
    resolver: AddrInfoResolver,
    pub(super) extensions: Extensions,
    pub(super) runtime: RuntimeChoice,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl NodeOptions {
    pub(super) fn new() -> Self {
        Self {
            channel: EventChannel::options(),
            executor: Arc::<ThreadExecutor>::default(),
            max_handshakes: DEFAULT_MAX_HANDSHAKES,
            resolver: AddrInfoResolver::new(),
            extensions: Extensions::default(),
            runtime: RuntimeChoice::default(),
        }
    }

    /// Opens the event channel with these options.
    #[must_use]
    pub fn channel(mut self, channel: ChannelOptions) -> Self {
        self.channel = channel;
        self
    }

    /// Runs calls that block in the kernel on this executor, instead of a
    /// [`ThreadExecutor`](crate::ThreadExecutor).
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn BlockingExecutor>) -> Self {
        self.executor = executor;
        self
    }

    /// How many TCP handshakes of iWARP connections may be in flight at a time: 64 by default, at
    /// least one. A further handshake waits until its deadline, and then fails with
    /// [`Cause::TooManyHandshakes`](crate::Cause::TooManyHandshakes). A handshake with a host that
    /// does not answer takes about two minutes, even if its caller gives up earlier; meanwhile it
    /// occupies a task of the [executor](Self::executor), an id, and a queue pair with its memory.
    /// Those that callers have given up occupy a quarter of the limit for each address and port at most,
    /// and at least one; a further one with the same waits until the first of them has ended. So one
    /// silent address of a name leaves most of them to the others. They count once they run: the executor
    /// should run as many tasks at a time.
    #[must_use]
    pub fn max_handshakes(mut self, limit: usize) -> Self {
        self.max_handshakes = limit;
        self
    }

    /// Resolves names with this `AddrInfoResolver`.
    #[must_use]
    pub fn addr_info_resolver(mut self, resolver: &AddrInfoResolver) -> Self {
        self.resolver = resolver.clone();
        self
    }

    /// Opens the connection manager.
    ///
    /// # Errors
    /// Those of [`Node::open`].
    pub fn open(self) -> Result<Node> {
        let channel = self.channel.open().map_err(not_opened)?;
        // The event loop watches its descriptor, which is opened now.
        channel.readiness().map_err(not_opened)?;
        let parts = EventLoopParts {
            channel,
            executor: self.executor,
            max_handshakes: self.max_handshakes,
            extensions: self.extensions,
        };
        let runtime = self.runtime;
        let event_loop = EventLoop::new(parts, |sources| runtime.register(sources));
        let event_loop = event_loop.map_err(not_watched)?;
        Ok(Node::new(event_loop, self.resolver))
    }
}

fn not_opened(error: rdmacm_core::Error) -> Error {
    Error::new(Stage::Open, error.into())
}

fn not_watched(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(errno) => not_opened(rdmacm_core::Error::Wait { errno }),
        None => Error::new(Stage::Open, Cause::Runtime(error)),
    }
}

impl fmt::Debug for NodeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeOptions")
            .field("channel", &self.channel)
            .field("executor", &self.executor)
            .field("max_handshakes", &self.max_handshakes)
            .finish_non_exhaustive()
    }
}
