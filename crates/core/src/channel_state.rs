//! The state of a channel, shared by the channel and its ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rdmacm_abi::{DestroyId, DestroyIdResponse};
use zerocopy::FromZeros;

use crate::address_abi::{AddressAbi, SelectedAbi};
use crate::command_support::CommandSupport;
use crate::rdma_devices::RdmaDevices;
use crate::token::Token;
use crate::ucma::{Attachment, UcmaFile, transact};

mod local_events;

pub(crate) use local_events::LocalEvent;
use local_events::LocalEvents;

/// The file of a channel, and the ids whose events it delivers. The parameter is
/// the state of an id, of which this module knows nothing else.
#[derive(Debug)]
pub(crate) struct ChannelState<I> {
    pub(crate) ucma: Arc<dyn UcmaFile>,
    pub(crate) devices: Arc<dyn RdmaDevices>,
    pub(crate) address_abi: SelectedAbi,
    pub(crate) command_support: CommandSupport,
    registrations: Mutex<HashMap<Token, Registration<I>>>,
    local_events: LocalEvents,
}

/// The id to which the events with one token belong.
#[derive(Debug)]
pub(crate) struct Registration<I> {
    pub(crate) id: Weak<I>,
    pub(crate) target: EventTarget,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventTarget {
    /// The id itself.
    Id,
    /// A multicast group that the id joined.
    Group,
}

impl<I> ChannelState<I> {
    pub(crate) fn new(
        ucma: Arc<dyn UcmaFile>,
        devices: Arc<dyn RdmaDevices>,
        address_abi: Option<AddressAbi>,
    ) -> Arc<Self> {
        Arc::new(Self {
            ucma,
            devices,
            address_abi: SelectedAbi::new(address_abi),
            command_support: CommandSupport::default(),
            registrations: Mutex::default(),
            local_events: LocalEvents::default(),
        })
    }

    /// The map is valid between any two statements, so a panic that poisons the
    /// lock leaves it valid.
    pub(crate) fn registrations(&self) -> MutexGuard<'_, HashMap<Token, Registration<I>>> {
        self.registrations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a local event and notifies waiting callers.
    pub(crate) fn push_local_event(&self, event: LocalEvent) {
        self.local_events.push(event);
        self.ucma.notify();
    }

    pub(crate) fn pop_local_event(&self) -> Option<LocalEvent> {
        self.local_events.pop()
    }

    /// Moves the unread local events of an id to another channel. Notifies nobody.
    pub(crate) fn move_local_events(&self, token: Token, to: &Self) {
        self.local_events.move_to(&to.local_events, token);
    }

    /// Drops the unread local events of an id.
    pub(crate) fn discard_local_events(&self, token: Token) {
        self.local_events.discard(token);
    }

    /// Destroys an id in the kernel. Ignores a failure: the id is gone already, or
    /// the process changed its credentials, and closing the file frees the id then.
    pub(crate) fn destroy(&self, kernel_id: u32) {
        let mut events_reported = DestroyIdResponse::new_zeroed();
        let _ = transact(
            self.ucma.as_ref(),
            &DestroyId::new(kernel_id),
            &mut events_reported,
            Attachment::None,
        );
    }
}
