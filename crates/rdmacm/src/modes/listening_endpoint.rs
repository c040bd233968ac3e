//! A listener that creates queue pairs.

use rdmacm_addrinfo::AddrInfo;
use rdmacm_core::{CmAddr, Deadline};
use rdmacm_verbs::QpOptions;

use super::{Endpoint, IncomingEndpoint, Listener};
use crate::endpoint::{check, refused};
use crate::error::Result;
use crate::stage::Stage;

by_mode! {
    /// Listens, and creates a queue pair for each peer.
    ///
    blocking {
        /// ```no_run
        /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::ListeningEndpoint;
        /// use rdmacm::addrinfo::{Hints, resolve};
        /// use rdmacm::core::{ConnParam, QpType};
        /// use rdmacm::verbs::QueuePair;
        ///
        /// let results = resolve("10.1.0.7", "7471", &Hints::rc().passive())?;
        /// let info = results.first().ok_or("no address")?;
        /// let options = QueuePair::options(QpType::RC).with_completion_channels();
        /// let listening = ListeningEndpoint::bind(info, &options)?;
        /// let incoming = listening.accept(Duration::from_secs(60))?;
        /// let buffer = incoming.queue_pair().protection_domain().allocate(16)?;
        /// incoming.post_receive(buffer)?;
        /// let connection = incoming.accept(ConnParam::new())?;
        /// let received = connection.next_received(Duration::from_secs(1))?;
        /// # Ok(())
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(feature = "tokio")]
        /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::addrinfo::Hints;
        /// use rdmacm::core::{ConnParam, QpType};
        /// use rdmacm::tokio::{ListeningEndpoint, Node};
        /// use rdmacm::verbs::QueuePair;
        ///
        /// let node = Node::open()?;
        /// let results = node.resolve("10.1.0.7", "7471", &Hints::rc().passive()).await?;
        /// let info = results.first().ok_or("no address")?;
        /// let options = QueuePair::options(QpType::RC).with_completion_channels();
        /// let listening = ListeningEndpoint::bind(info, &options)?;
        /// let incoming = listening.accept(Duration::from_secs(60)).await?;
        /// let buffer = incoming.queue_pair().protection_domain().allocate(16)?;
        /// incoming.post_receive(buffer)?;
        /// let connection = incoming.accept(ConnParam::new()).await?;
        /// let received = connection.next_received(Duration::from_secs(1)).await?;
        /// # Ok(())
        /// # }
        /// ```
    }
    #[derive(Debug)]
    #[doc(alias = "rdma_create_ep", alias = "rdma_listen")]
    pub struct ListeningEndpoint {
        listener: Listener,
        options: QpOptions,
    }
}

const NOT_PASSIVE: &str = "a result to listen on is passive: it has a source and no destination";

impl ListeningEndpoint {
    /// Listens on the source of a passive result of [`addrinfo`](crate::addrinfo), with a
    /// [`Node`](crate::Node) of its own.
    ///
    /// # Errors
    /// [`Stage::QueuePair`] for a result that is not of reliable connections; [`Stage::Listen`]
    /// for one that is not passive; those of [`Listener::bind`].
    pub fn bind(info: &AddrInfo, options: &QpOptions) -> Result<Self> {
        check(info)?;
        let source = info.source.filter(|_| info.destination.is_none());
        let source = source.ok_or_else(|| refused(Stage::Listen, NOT_PASSIVE))?;
        let listener = Listener::options().port_space(info.port_space);
        Ok(Self::with_listener(listener.bind(source)?, options))
    }

    /// The same with a listener of the caller's.
    #[must_use]
    pub fn with_listener(listener: Listener, options: &QpOptions) -> Self {
        let options = options.clone();
        Self { listener, options }
    }

    /// The listener.
    #[must_use]
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// The address it listens on, with its port.
    #[must_use]
    pub fn local_addr(&self) -> CmAddr {
        self.listener.local_addr()
    }

    waits! {
        /// Waits for the next peer, and creates its queue pair.
        awaited {
            /// Dropping the future loses none.
        }
        both {
            ///
            /// # Errors
            /// Those of [`Listener::accept`]; [`Stage::QueuePair`], and the peer is rejected.
            #[doc(alias = "rdma_get_request")]
        }
        pub fn accept(&self, deadline: impl Into<Deadline>) -> Result<IncomingEndpoint> {
            self.listener.event_loop() => async {
                let incoming = self.listener.next_incoming(deadline.into()).await?;
                Endpoint::from_incoming(incoming, &self.options)
            }
        }
    }
}
