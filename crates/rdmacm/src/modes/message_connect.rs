//! Connecting and accepting with queue pairs that carry messages.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rdmacm_core::{QueuePair, RdmaDevice};
use rdmacm_verbs::{DeviceSource, ProtectionDomain};

use super::{Connection, Connector, Incoming, Node, NodeOptions, Resolved};
use crate::attempt::Attempt;
use crate::data::{Devices, OpenDevice, limit_retries};
use crate::error::{Cause, Error, Result, Target};
use crate::established::Established;
use crate::event_loop::EventLoop;
use crate::messages::{
    MessageConnection, MessageOptions, MessageQueuePair, MessageQueuePairFactory,
};
use crate::queue_pair_factory::QueuePairFactory as _;
use crate::stage::Stage;

fn open(established: Established, queue_pair: Arc<MessageQueuePair>) -> Connection {
    let connection = MessageConnection::new(established, queue_pair);
    connection.wake_up_peer();
    Connection::new(connection)
}

impl Connector {
    waits_on_node! {
        /// Connects, ready to send and to receive messages, with
        /// [default options](MessageOptions::new).
        ///
        /// # Errors
        /// [`Error`](crate::Error), with the stage that failed. The id and the queue pair are
        /// destroyed, on iWARP once TCP's handshake has ended
        /// ([`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes)).
        #[doc(alias = "rdma_connect")]
        pub fn connect(mut self) -> Result<Connection> {
            let node = self.open_node();
            self.connect_with_messages(&node, MessageOptions::new())
        }
    }

    waits_on_node! {
        /// Connects, ready to send and to receive messages as the options say. The queue pair
        /// is of a soft device, and receives are posted before the connect request is sent.
        ///
        /// # Errors
        /// [`Error`](crate::Error), with the stage that failed. The id and the queue pair are
        /// destroyed, on iWARP once TCP's handshake has ended
        /// ([`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes)).
        #[doc(alias = "rdma_connect")]
        pub fn connect_messages(mut self, options: MessageOptions) -> Result<Connection> {
            let node = self.open_node();
            self.connect_with_messages(&node, options)
        }
    }

    // Not an `async fn`, whose future holds each argument twice.
    fn connect_with_messages(
        mut self,
        node: &Node,
        options: MessageOptions,
    ) -> impl Future<Output = Result<Connection>> {
        if options.has_keep_alive() {
            limit_retries(&mut self.config.param);
        }
        let factory = MessageQueuePairFactory::new(&node.event_loop, options);
        async move {
            let connected = self.attempts(node).connect(&factory).await;
            let (established, queue_pair) = connected?;
            Ok(open(established, Arc::clone(&queue_pair)))
        }
    }
}

impl Resolved {
    waits! {
        /// Connects, ready to send and to receive messages, with
        /// [default options](MessageOptions::new).
        ///
        /// # Errors
        /// [`Error`](crate::Error), with the stage that failed. The id and the queue pair are
        /// destroyed, on iWARP once TCP's handshake has ended
        /// ([`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes)).
        #[doc(alias = "rdma_connect")]
        pub fn connect(self) -> Result<Connection> {
            self.event_loop() => self.connect_with_messages(MessageOptions::new())
        }
    }

    waits! {
        /// Connects, ready to send and to receive messages as the options say.
        ///
        /// # Errors
        /// [`Error`](crate::Error), with the stage that failed. The id and the queue pair are
        /// destroyed, on iWARP once TCP's handshake has ended
        /// ([`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes)).
        #[doc(alias = "rdma_connect")]
        pub fn connect_messages(self, options: MessageOptions) -> Result<Connection> {
            self.event_loop() => self.connect_with_messages(options)
        }
    }

    /// A protection domain on the device that the connection will use, for memory of
    /// [several connections](MessageOptions::protection_domain), or that is exposed before
    /// connecting.
    ///
    /// # Errors
    /// [`Stage::Register`]: the device cannot be opened, or refuses.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn protection_domain(&self) -> Result<ProtectionDomain> {
        protection_domain(self.event_loop(), self.id(), &self.attempt())
    }

    fn connect_with_messages(
        mut self,
        options: MessageOptions,
    ) -> impl Future<Output = Result<Connection>> {
        if options.has_keep_alive() {
            limit_retries(self.param_mut());
        }
        let factory = MessageQueuePairFactory::new(self.event_loop(), options);
        let created = factory.create(self.id());
        let created = created.map_err(|error| self.attempt().no_queue_pair(self.id(), error));
        async move {
            let queue_pair = created?;
            let shared: Arc<dyn QueuePair> = queue_pair.clone();
            let established = self.handshake(shared).await?;
            Ok(open(established, queue_pair))
        }
    }
}

impl Incoming {
    waits! {
        /// Accepts the peer, ready to send and to receive messages, with
        /// [default options](MessageOptions::new), and waits until the connection is
        /// established.
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
        pub fn accept(self) -> Result<Connection> {
            self.event_loop() => self.accept_with_messages(MessageOptions::new())
        }
    }

    waits! {
        /// Accepts the peer, ready to send and to receive messages as the options say. The
        /// queue pair is of a soft device, and receives are posted before the reply is sent.
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
        pub fn accept_messages(self, options: MessageOptions) -> Result<Connection> {
            self.event_loop() => self.accept_with_messages(options)
        }
    }

    /// A protection domain on the device that the peer is reached by, for memory of
    /// [several connections](MessageOptions::protection_domain), or that is exposed before the
    /// peer is accepted, so that its keys can be in the private data.
    ///
    /// # Errors
    /// [`Stage::Register`]: the device cannot be opened, or refuses.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn protection_domain(&self) -> Result<ProtectionDomain> {
        protection_domain(self.event_loop(), self.id(), &self.attempt())
    }

    // Not an `async fn`, whose future holds each argument twice.
    fn accept_with_messages(
        self,
        options: MessageOptions,
    ) -> impl Future<Output = Result<Connection>> {
        let factory = MessageQueuePairFactory::new(self.event_loop(), options);
        let factory = factory.on_device(self.device_id().ok().flatten());
        let created = self.create(&factory);
        async move {
            let queue_pair = created?;
            let shared: Arc<dyn QueuePair> = queue_pair.clone();
            let established = self.accept_queue_pair(shared).await?;
            let connection = MessageConnection::new(established, queue_pair);
            Ok(Connection::new(connection))
        }
    }
}

impl Node {
    /// A protection domain on a device, for memory of
    /// [several connections](MessageOptions::protection_domain), or that a server exposes
    /// before its first client connects. [`rdma_devices`](Self::rdma_devices) lists the
    /// devices, and [`Incoming::protection_domain`] makes one on the device of a request.
    ///
    /// # Errors
    /// [`Stage::Register`]: the device cannot be opened, or refuses.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn protection_domain(&self, device: &RdmaDevice) -> Result<ProtectionDomain> {
        let domain = OpenDevice::open(&self.event_loop, device.id())
            .and_then(|device| device.context().create_protection_domain());
        domain.map_err(|error| {
            let target = Target::device_name(&device.name);
            Error::with_target(
                Stage::Register,
                target,
                Duration::ZERO,
                Cause::device(error),
            )
        })
    }
}

impl NodeOptions {
    /// Opens devices for messages, datagrams and endpoints from this source, instead of this
    /// host: for a simulation, together with a simulated event channel.
    #[must_use]
    pub fn device_source(self, source: Arc<dyn DeviceSource>) -> Self {
        self.extensions.insert(Devices::new(source));
        self
    }
}

fn protection_domain(
    event_loop: &Arc<EventLoop>,
    id: &rdmacm_core::IdHandle,
    attempt: &Attempt,
) -> Result<ProtectionDomain> {
    let failed = |cause| attempt.fail_on(id, Stage::Register, cause);
    let addresses = id.addresses().map_err(|error| failed(error.into()))?;
    let device = addresses.device.ok_or_else(|| failed(Cause::PeerGone))?;
    let domain = OpenDevice::open(event_loop, device)
        .and_then(|device| device.context().create_protection_domain());
    domain.map_err(|error| failed(Cause::device(error)))
}
