//! How to connect.

use std::time::Duration;

use rdmacm_core::{ConnParam, Deadline};

use super::SourceAddress;
use crate::id_options::IdOptions;
use crate::retry::RetryPolicy;

/// The default deadline of connecting, 15 s: name, address, route and the peer's reply
/// together. As long as that of resolving alone
/// ([`DEFAULT_DEADLINE`](rdmacm_addrinfo::DEFAULT_DEADLINE)): a dead first name server
/// costs up to ten seconds of it.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(15);

/// The default deadline of accepting, 10 s: how long the peer may take to complete the
/// connection.
pub const ACCEPT_DEADLINE: Duration = Duration::from_secs(10);

/// A good deadline for closing a connection: 5 s.
pub const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// The default delay between attempts at several addresses, 250 ms. Source: RFC 8305 §5.
pub const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// How to connect.
#[derive(Clone, Debug)]
pub(crate) struct ConnectConfig {
    pub(crate) options: IdOptions,
    pub(crate) source: SourceAddress,
    pub(crate) param: ConnParam,
    pub(crate) deadline: Deadline,
    pub(crate) retry: RetryPolicy,
    pub(crate) attempt_delay: Duration,
}

impl Default for ConnectConfig {
    fn default() -> Self {
        Self {
            options: IdOptions::default(),
            source: SourceAddress::default(),
            param: ConnParam::new(),
            deadline: CONNECT_DEADLINE.into(),
            retry: RetryPolicy::never(),
            attempt_delay: CONNECTION_ATTEMPT_DELAY,
        }
    }
}
