//! A connect request.

use std::future::Future;
use std::sync::Arc;

use rdmacm_core::{CmAddr, ConnInfo, ConnParam, Deadline, DeviceId, IdHandle, QueuePair};

use super::CmConnection;
use crate::attempt::Attempt;
use crate::connect::ACCEPT_DEADLINE;
use crate::error::{Result, Target};
use crate::established::{Established, known_address, known_device};
use crate::event_loop::EventLoop;
use crate::listen::{Request, accept};
use crate::queue_pair_factory::QueuePairFactory;
use crate::stage::Stage;

by_mode! {
    /// A peer that requests a connection: accept it or reject it. Dropping it rejects it without
    /// private data.
    ///
    blocking {
        /// ```no_run
        /// # #[cfg(feature = "verbs")]
        /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::Listener;
        ///
        /// let listener = Listener::bind("10.1.0.7:7471")?;
        /// let incoming = listener.accept(Duration::from_secs(60))?;
        /// if incoming.private_data().starts_with(b"hello, version 1") {
        ///     let connection = incoming.accept()?;
        ///     while let Some(message) = connection.receive()? {
        ///         connection.send(&message)?;
        ///     }
        ///     connection.close(rdmacm::CLOSE_DEADLINE)?;
        /// } else {
        ///     incoming.reject(b"version 1 only")?;
        /// }
        /// # Ok(())
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(all(feature = "verbs", feature = "tokio"))]
        /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::tokio::Listener;
        ///
        /// let listener = Listener::bind("10.1.0.7:7471")?;
        /// let incoming = listener.accept(Duration::from_secs(60)).await?;
        /// if incoming.private_data().starts_with(b"hello, version 1") {
        ///     let connection = incoming.accept().await?;
        ///     while let Some(message) = connection.receive().await? {
        ///         connection.send(&message).await?;
        ///     }
        ///     connection.close(rdmacm::CLOSE_DEADLINE).await?;
        /// } else {
        ///     incoming.reject(b"version 1 only")?;
        /// }
        /// # Ok(())
        /// # }
        /// ```
    }
    #[derive(Debug)]
    #[must_use = "dropping it rejects the peer"]
    pub struct Incoming {
        request: Request,
        param: ConnParam,
        deadline: Deadline,
    }
}

impl Incoming {
    pub(super) fn new(request: Request) -> Self {
        Self {
            request,
            param: ConnParam::new(),
            deadline: ACCEPT_DEADLINE.into(),
        }
    }

    pub(super) fn event_loop(&self) -> &Arc<EventLoop> {
        self.request.id.event_loop()
    }

    /// The private data of the request, as
    /// [`Event::private_data`](rdmacm_core::Event::private_data) returns it.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        self.request.event.private_data()
    }

    /// The parameters of the peer's queue pair, from its request; `None` if the event had none.
    #[must_use]
    pub fn peer(&self) -> Option<ConnInfo> {
        self.request.event.conn()
    }

    /// The connection's id. Use it to query device, addresses, GIDs and path records, or to move
    /// your queue pair to INIT so that you can post receives first
    /// (`incoming.id().with_queue_pair(&queue_pair).init()`).
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        self.request.id.id()
    }

    /// The RDMA device by which the peer is reached. Costs no system call if the listener is bound
    /// to a device.
    ///
    /// # Errors
    /// [`Stage::Accept`]: those of [`IdHandle::addresses`].
    #[doc(alias = "verbs")]
    pub fn device_id(&self) -> Result<Option<DeviceId>> {
        if self.request.device.is_some() {
            return Ok(self.request.device);
        }
        known_device(&self.request.id, Stage::Accept)
    }

    /// The local address, which the peer has connected to.
    ///
    /// # Errors
    /// [`Stage::Accept`]: those of [`IdHandle::addresses`].
    #[doc(alias = "rdma_get_local_addr")]
    pub fn local_addr(&self) -> Result<CmAddr> {
        known_address(&self.request.id, Stage::Accept, IdHandle::local_addr)
    }

    /// The peer's address.
    ///
    /// # Errors
    /// [`Stage::Accept`]: those of [`IdHandle::addresses`].
    #[doc(alias = "rdma_get_peer_addr")]
    pub fn peer_addr(&self) -> Result<CmAddr> {
        known_address(&self.request.id, Stage::Accept, IdHandle::peer_addr)
    }

    /// How long the peer may take to complete the connection, counted from accepting it;
    /// [`ACCEPT_DEADLINE`](crate::ACCEPT_DEADLINE) by default.
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// The parameters of the reply. The number of the queue pair is filled in. Depths that are not
    /// set grant what the peer asks for, within the limits of the device.
    pub fn param(mut self, param: ConnParam) -> Self {
        self.param = param;
        self
    }

    /// Rejects the peer, with private data.
    ///
    /// # Errors
    /// [`Stage::Reject`]: the private data is too long, or the peer has already given up. The
    /// request is rejected in either case.
    #[doc(alias = "rdma_reject")]
    pub fn reject(self, private_data: &[u8]) -> Result<()> {
        let rejected = self.id().reject(private_data);
        rejected.map_err(|error| self.attempt().fail_on(self.id(), Stage::Reject, error))
    }

    pub(super) fn attempt(&self) -> Attempt {
        Attempt::until(self.event_loop(), self.deadline, Target::default())
    }

    pub(super) fn into_request(self) -> (Request, ConnParam) {
        (self.request, self.param)
    }

    pub(super) fn accept_queue_pair(
        self,
        queue_pair: Arc<dyn QueuePair>,
    ) -> impl Future<Output = Result<Established>> {
        accept(self.attempt(), self.request, queue_pair, self.param)
    }

    // Not an `async fn`, whose future holds each argument twice.
    pub(super) fn accept_as<Q: QueuePair + 'static>(
        self,
        queue_pair: Q,
    ) -> impl Future<Output = Result<CmConnection<Q>>> {
        let queue_pair = Arc::new(queue_pair);
        async move {
            let shared: Arc<dyn QueuePair> = queue_pair.clone();
            let established = self.accept_queue_pair(shared).await?;
            Ok(CmConnection::new(established, queue_pair))
        }
    }

    pub(super) fn create<F: QueuePairFactory>(&self, factory: &F) -> Result<F::QueuePair> {
        let created = factory.create(self.id());
        created.map_err(|error| self.attempt().no_queue_pair(self.id(), error))
    }

    waits! {
        /// Accepts the peer with a queue pair on the id's device, and waits until the connection
        /// is established. If the peer has already disconnected, the connection is closed, and
        /// what the peer has sent can be received.
        awaited {
            /// Dropping the future rejects the peer, or disconnects it if it was accepted already.
        }
        both {
            ///
            /// # Errors
            /// [`Error`](crate::Error), with the stage that failed. The peer is rejected, or
            /// disconnected if it was accepted already.
            #[doc(alias = "rdma_accept")]
        }
        pub fn accept_on<Q: QueuePair, 'static>(self, queue_pair: Q) -> Result<CmConnection<Q>> {
            self.event_loop() => self.accept_as(queue_pair)
        }
    }

    waits! {
        /// Accepts the peer with a queue pair that the factory creates.
        ///
        /// # Errors
        /// Those of [`accept_on`](Self::accept_on).
        #[doc(alias = "rdma_accept")]
        pub fn accept_with<F: QueuePairFactory>(
            self,
            factory: F
        ) -> Result<CmConnection<F::QueuePair>> {
            self.event_loop() => async {
                let queue_pair = self.create(&factory)?;
                self.accept_as(queue_pair).await
            }
        }
    }
}
