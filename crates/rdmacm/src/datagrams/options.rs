//! How to open a socket.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use rdmacm_core::{CmAddr, Error, PortSpace, QpType, UdParam};

use super::socket::DatagramSocket;
use crate::error::Result;
use crate::id_options::IdOptions;
use crate::mode::Mode;
use crate::node::Node;
use crate::retry::RetryPolicy;

/// How many questions wait where the caller does not say.
const QUEUE: usize = 1024;

/// The room for private data in an answer. Source: IBTA Vol 1 §12.11.
const ANSWER: usize = 136;

type Admits = dyn Fn(&[u8]) -> bool + Send + Sync;

/// Whether a peer is answered, by the private data of its question.
#[derive(Clone)]
pub(super) struct Admit(Arc<Admits>);

impl Admit {
    fn everyone() -> Self {
        Self(Arc::new(|_| true))
    }

    pub(super) fn admits(&self, question: &[u8]) -> bool {
        (self.0)(question)
    }
}

impl fmt::Debug for Admit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Admit")
    }
}

/// What a caller wants of a socket.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    pub(super) id: IdOptions,
    pub(super) receives: u32,
    pub(super) sends: u32,
    pub(super) backlog: u32,
    pub(super) queue: usize,
    pub(super) retry: RetryPolicy,
    pub(super) question: UdParam,
    pub(super) answer: UdParam,
    pub(super) admit: Admit,
}

/// How to open a [`DatagramSocket`].
#[derive(Debug)]
pub struct DatagramOptions<M> {
    pub(super) node: Option<Node<M>>,
    pub(super) choices: Choices,
    mode: PhantomData<fn() -> M>,
}

impl<M: Mode> DatagramOptions<M> {
    pub(super) fn new() -> Self {
        Self {
            node: None,
            choices: Choices {
                id: IdOptions {
                    port_space: PortSpace::UDP,
                    qp_type: QpType::UD,
                    ..IdOptions::default()
                },
                receives: 32,
                sends: 32,
                // The kernel's maximum.
                backlog: 0,
                queue: QUEUE,
                retry: RetryPolicy::never(),
                question: UdParam::new(),
                answer: UdParam::new(),
                admit: Admit::everyone(),
            },
            mode: PhantomData,
        }
    }

    /// On a node that others use too, instead of one of its own.
    #[must_use]
    pub fn on(mut self, node: &Node<M>) -> Self {
        self.node = Some(node.clone());
        self
    }

    /// How many datagrams may arrive before the first of them is received, 32 unless
    /// set; more are lost. A datagram that was received takes its place for as long as
    /// it is kept. Memory for all of them, of the MTU and 40 bytes each, is registered
    /// and pinned.
    #[must_use]
    #[doc(alias = "max_recv_wr")]
    pub fn receives(mut self, datagrams: u32) -> Self {
        self.choices.receives = datagrams;
        self
    }

    /// How many datagrams may be under way, 32 unless set; others wait for those before.
    #[must_use]
    #[doc(alias = "max_send_wr")]
    pub fn sends(mut self, datagrams: u32) -> Self {
        self.choices.sends = datagrams;
        self
    }

    /// Whether and when to ask a peer again that refused or could not be reached.
    /// Otherwise it is asked once.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.choices.retry = policy;
        self
    }

    /// The port space, [`PortSpace::UDP`] unless set.
    #[must_use]
    #[doc(alias = "RDMA_PS_UDP", alias = "RDMA_PS_IPOIB")]
    pub fn port_space(mut self, port_space: PortSpace) -> Self {
        self.choices.id.port_space = port_space;
        self
    }

    /// The type of service of the paths that are asked for, see
    /// [`set_tos`](rdmacm_core::IdHandle::set_tos).
    #[must_use]
    pub fn tos(mut self, tos: u8) -> Self {
        self.choices.id.tos = Some(tos);
        self
    }

    /// What peers are told that are asked where they are: at most 180 bytes by IP
    /// address.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`] for more than anything transmits; the question
    /// itself for more than its field has.
    pub fn question(mut self, private_data: &[u8]) -> Result<Self, Error> {
        self.choices.question = self.choices.question.private_data(private_data)?;
        Ok(self)
    }

    /// What peers are told that ask where this socket is: at most 136 bytes.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`].
    pub fn answer(mut self, private_data: &[u8]) -> Result<Self, Error> {
        if private_data.len() > ANSWER {
            return Err(Error::PrivateDataTooLong {
                length: private_data.len(),
                limit: ANSWER,
            });
        }
        self.choices.answer = self.choices.answer.private_data(private_data)?;
        Ok(self)
    }

    /// Which peers are told where this socket is, by the private data of their question:
    /// a field of 180 bytes with zeros behind what they sent. All are, unless set; the
    /// others are rejected. It runs on the thread that happens to wait on the socket, so
    /// it must not block. Whoever knows the queue pair's number sends without asking.
    #[must_use]
    pub fn admit(mut self, admit: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.choices.admit = Admit(Arc::new(admit));
        self
    }

    /// Opens it on the device of an address, see [`DatagramSocket::bind`].
    ///
    /// # Errors
    /// Those of [`DatagramSocket::bind`].
    pub fn bind<A>(self, address: A) -> Result<DatagramSocket<M>>
    where
        A: TryInto<CmAddr>,
    {
        DatagramSocket::open(self, address)
    }
}
