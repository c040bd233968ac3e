//! How to open a socket.

use std::fmt;
use std::sync::Arc;

use rdmacm_core::{PortSpace, QpType, UdParam};

use crate::id_options::IdOptions;
use crate::retry::RetryPolicy;

type Accepts = dyn Fn(&[u8]) -> bool + Send + Sync;

/// Whether a peer receives a reply, by the private data of its request.
#[derive(Clone)]
pub(crate) struct Filter(Arc<Accepts>);

impl Filter {
    pub(crate) fn new(accepts: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(accepts))
    }

    pub(super) fn accepts(&self, private_data: &[u8]) -> bool {
        (self.0)(private_data)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filter")
    }
}

/// How to open a socket.
#[derive(Clone, Debug)]
pub(crate) struct DatagramConfig {
    pub(crate) id: IdOptions,
    pub(crate) receives: u32,
    pub(crate) sends: u32,
    /// Whether peers resolve it by SIDR.
    pub(crate) listens: bool,
    pub(crate) retry: RetryPolicy,
    pub(crate) request: UdParam,
    pub(crate) reply: UdParam,
    pub(crate) filter: Filter,
}

impl Default for DatagramConfig {
    fn default() -> Self {
        Self {
            id: IdOptions {
                port_space: PortSpace::UDP,
                qp_type: QpType::UD,
                ..IdOptions::default()
            },
            receives: 32,
            sends: 32,
            listens: true,
            retry: RetryPolicy::never(),
            request: UdParam::new(),
            reply: UdParam::new(),
            filter: Filter::new(|_| true),
        }
    }
}
