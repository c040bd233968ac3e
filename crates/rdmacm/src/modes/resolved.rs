//! A resolved peer.

use std::future::Future;
use std::sync::Arc;

use rdmacm_core::{CmAddr, ConnParam, Deadline, DeviceId, IdHandle, QueuePair};

use super::CmConnection;
use crate::attempt::Attempt;
use crate::connect::{ConnectConfig, Routed, handshake};
use crate::error::{Result, Target};
use crate::established::{Established, known_address, known_device};
use crate::event_loop::EventLoop;
use crate::stage::Stage;

by_mode! {
    /// A peer whose address and route are resolved. Its device is known, so a queue pair can be
    /// created there and connected. Dropping it destroys the id.
    ///
    blocking {
        /// ```no_run
        /// # #[cfg(feature = "verbs")]
        /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use rdmacm::Connector;
        /// use rdmacm::core::QpType;
        /// use rdmacm::verbs::{Context, QueuePair};
        ///
        /// let resolved = Connector::new("storage-7:7471").resolve()?;
        /// let device = resolved.device_id()?.ok_or("no device")?;
        /// let queue_pair = QueuePair::options(QpType::RC).create(&Context::open_by_id(device)?)?;
        /// let connection = resolved.connect_on(queue_pair)?;
        /// # Ok(())
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(all(feature = "verbs", feature = "tokio"))]
        /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use rdmacm::core::QpType;
        /// use rdmacm::tokio::Connector;
        /// use rdmacm::verbs::{Context, QueuePair};
        ///
        /// let resolved = Connector::new("storage-7:7471").resolve().await?;
        /// let device = resolved.device_id()?.ok_or("no device")?;
        /// let queue_pair = QueuePair::options(QpType::RC).create(&Context::open_by_id(device)?)?;
        /// let connection = resolved.connect_on(queue_pair).await?;
        /// # Ok(())
        /// # }
        /// ```
    }
    #[derive(Debug)]
    #[must_use = "dropping it destroys the id"]
    pub struct Resolved {
        routed: Routed,
        config: ConnectConfig,
    }
}

impl Resolved {
    pub(super) fn new(routed: Routed, config: ConnectConfig) -> Self {
        Self { routed, config }
    }

    pub(super) fn event_loop(&self) -> &Arc<EventLoop> {
        self.routed.id.event_loop()
    }

    /// The connection's id. Use it to query device, addresses, GIDs and path records, or to move
    /// your queue pair to INIT so that you can post receives first
    /// (`resolved.id().with_queue_pair(&queue_pair).init()`).
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        self.routed.id.id()
    }

    /// The RDMA device by which the peer is reached.
    ///
    /// # Errors
    /// [`Stage::Bind`]: those of [`IdHandle::addresses`].
    #[doc(alias = "verbs")]
    pub fn device_id(&self) -> Result<Option<DeviceId>> {
        known_device(&self.routed.id, Stage::Bind)
    }

    /// The local address.
    ///
    /// # Errors
    /// [`Stage::Bind`]: those of [`IdHandle::addresses`].
    #[doc(alias = "rdma_get_local_addr")]
    pub fn local_addr(&self) -> Result<CmAddr> {
        known_address(&self.routed.id, Stage::Bind, IdHandle::local_addr)
    }

    /// The peer's address.
    ///
    /// # Errors
    /// [`Stage::Bind`]: those of [`IdHandle::addresses`].
    #[doc(alias = "rdma_get_peer_addr")]
    pub fn peer_addr(&self) -> Result<CmAddr> {
        known_address(&self.routed.id, Stage::Bind, IdHandle::peer_addr)
    }

    /// How long connecting may take, counted from the call. By default as long as the
    /// [`Connector`](super::Connector) allowed for everything.
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.config.deadline = deadline.into();
        self
    }

    /// The parameters of the connect request. The number of the queue pair is filled in.
    pub fn param(mut self, param: ConnParam) -> Self {
        self.config.param = param;
        self
    }

    pub(super) fn param_mut(&mut self) -> &mut ConnParam {
        &mut self.config.param
    }

    pub(super) fn attempt(&self) -> Attempt {
        let address = self.id().peer_addr().ok().flatten();
        let target = address.map_or_else(Target::default, Target::from);
        Attempt::until(self.event_loop(), self.config.deadline, target)
    }

    // Not an `async fn`, whose future holds each argument twice.
    pub(super) fn handshake(
        self,
        queue_pair: Arc<dyn QueuePair>,
    ) -> impl Future<Output = Result<Established>> {
        let mut attempt = self.attempt();
        let Self { routed, config, .. } = self;
        async move { handshake(&mut attempt, routed, queue_pair, config.param).await }
    }

    pub(super) fn connect_as<Q: QueuePair + 'static>(
        self,
        queue_pair: Q,
    ) -> impl Future<Output = Result<CmConnection<Q>>> {
        let queue_pair = Arc::new(queue_pair);
        async move {
            let shared: Arc<dyn QueuePair> = queue_pair.clone();
            let established = self.handshake(shared).await?;
            Ok(CmConnection::new(established, queue_pair))
        }
    }

    waits! {
        /// Connects a queue pair on the id's device.
        awaited {
            /// Dropping the future cancels the attempt.
        }
        both {
            ///
            /// # Errors
            /// [`Error`](crate::Error), with the stage that failed. The id and the queue pair are
            /// destroyed, on iWARP once TCP's handshake has ended
            /// ([`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes)).
            #[doc(alias = "rdma_connect")]
        }
        pub fn connect_on<Q: QueuePair, 'static>(self, queue_pair: Q) -> Result<CmConnection<Q>> {
            self.event_loop() => self.connect_as(queue_pair)
        }
    }
}
