//! What a caller wants of a connection.

use std::time::Duration;

use rdmacm_core::{ConnParam, Deadline};

use crate::id_options::IdOptions;
#[cfg(feature = "verbs")]
use crate::messages::MessageOptions;
use crate::retry::RetryPolicy;
use crate::steps::Source;

/// How long connecting may take where the caller does not say: name, address,
/// route and the peer's answer together. As long as resolving alone
/// ([`DEFAULT_DEADLINE`](rdmacm_addrinfo::DEFAULT_DEADLINE)): a dead first name server
/// costs up to ten seconds of it.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(15);

/// How long an accepted peer may take to be there where the caller does not say.
pub const ACCEPT_DEADLINE: Duration = Duration::from_secs(10);

/// How long parting may take where the caller does not say.
pub const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// How long to wait for one address of several before the next is tried as
/// well. Source: RFC 8305 §5.
pub const STAGGER: Duration = Duration::from_millis(250);

/// What a caller wants of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) options: IdOptions,
    pub(crate) source: Source,
    pub(crate) param: ConnParam,
    pub(crate) deadline: Deadline,
    pub(crate) retry: RetryPolicy,
    pub(crate) stagger: Duration,
    #[cfg(feature = "verbs")]
    pub(crate) messages: MessageOptions,
}

/// What rxe takes for ever.
#[cfg(feature = "verbs")]
const FOR_EVER: u8 = 7;

impl Plan {
    /// What the peer is told. Where signs of life are to find out that it is silent,
    /// a packet that is lost is not repeated for ever.
    pub(crate) fn conn_param(&self) -> ConnParam {
        let param = self.param.clone();
        #[cfg(feature = "verbs")]
        if self.messages.has_signs_of_life() && param.retries() == FOR_EVER {
            return param.retry_count(FOR_EVER - 1);
        }
        param
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            options: IdOptions::default(),
            source: Source::default(),
            param: ConnParam::new(),
            deadline: CONNECT_DEADLINE.into(),
            retry: RetryPolicy::never(),
            stagger: STAGGER,
            #[cfg(feature = "verbs")]
            messages: MessageOptions::new(),
        }
    }
}
