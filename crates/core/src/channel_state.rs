//! The state of a channel, shared by the channel and its ids.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rdmacm_abi::{DestroyId, DestroyIdResponse};
use zerocopy::FromZeros;

use crate::address_abi::{AddressAbi, SelectedAbi};
use crate::command_support::CommandSupport;
use crate::rdma_devices::{DeviceLookup, RdmaDevices, SystemDevices};
use crate::token::Token;
use crate::ucma::{Attachment, ChannelFile};

mod local_events;
mod poll_first;
mod registrations;

pub(crate) use local_events::LocalEvent;
use local_events::LocalEvents;
use poll_first::PollFirst;
use registrations::Registrations;

/// The file of a channel, and the ids whose events it delivers. The parameter is
/// the state of an id, of which this module knows nothing else.
#[derive(Debug)]
pub(crate) struct ChannelState<I> {
    pub(crate) ucma: ChannelFile,
    /// `None` for those of this machine.
    devices: Option<Arc<dyn RdmaDevices>>,
    pub(crate) address_abi: SelectedAbi,
    pub(crate) command_support: CommandSupport,
    registrations: Mutex<Registrations<I>>,
    local_events: LocalEvents,
    /// The channels that listeners were on before they migrated to this one, the latest last.
    /// Children of connect requests that moved with them are there.
    request_sources: Mutex<Vec<Weak<Self>>>,
    pub(crate) poll_first: PollFirst,
}

impl<I> ChannelState<I> {
    pub(crate) fn new(
        ucma: ChannelFile,
        devices: Option<Arc<dyn RdmaDevices>>,
        address_abi: Option<AddressAbi>,
    ) -> Arc<Self> {
        Arc::new(Self {
            ucma,
            devices,
            address_abi: SelectedAbi::new(address_abi),
            command_support: CommandSupport::default(),
            registrations: Mutex::default(),
            local_events: LocalEvents::default(),
            request_sources: Mutex::default(),
            poll_first: PollFirst::default(),
        })
    }

    /// The id to which events with this token belong; `None` if it is gone.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "every event looks one up")]
    pub(crate) fn find(&self, token: Token) -> Option<Arc<I>> {
        self.registrations().get(token)?.upgrade()
    }

    /// The registrations are valid between any two statements, so a panic that poisons
    /// the lock leaves them valid.
    pub(crate) fn registrations(&self) -> MutexGuard<'_, Registrations<I>> {
        self.registrations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The RDMA devices that ids of this channel can use.
    pub(crate) fn devices(&self) -> &dyn RdmaDevices {
        self.devices.as_deref().unwrap_or(&SystemDevices)
    }

    pub(crate) fn device_lookup(&self) -> DeviceLookup {
        DeviceLookup::new(self.devices.clone())
    }

    /// Queues a local event and notifies waiting callers.
    pub(crate) fn push_local_event(&self, event: LocalEvent) {
        self.local_events.push(event);
        self.ucma.notify();
    }

    #[inline]
    pub(crate) fn pop_local_event(&self) -> Option<LocalEvent> {
        self.local_events.pop()
    }

    /// Moves the unread local events of an id to another channel. Notifies nobody.
    pub(crate) fn move_local_events(&self, token: Token, to: &Self) {
        self.local_events.move_to(&to.local_events, token);
    }

    /// Drops the unread local events of an id.
    #[inline]
    pub(crate) fn discard_local_events(&self, token: Token) {
        self.local_events.discard(token);
    }

    /// Destroys an id in the kernel. Ignores a failure: the id is gone already, or
    /// the process changed its credentials, and closing the file frees the id then.
    #[inline]
    pub(crate) fn destroy(&self, kernel_id: u32) {
        let _ = self.try_destroy(kernel_id);
    }

    #[inline]
    fn try_destroy(&self, kernel_id: u32) -> io::Result<()> {
        let mut events_reported = DestroyIdResponse::new_zeroed();
        let request = DestroyId::new(kernel_id);
        self.ucma
            .transact(&request, &mut events_reported, Attachment::None)
    }

    /// A listener is about to migrate here, whose connect requests may have come through these
    /// channels, the latest first.
    pub(crate) fn add_request_sources(&self, sources: &[Arc<Self>]) {
        let mut known = self.request_sources();
        known.retain(|one| one.strong_count() > 0);
        for source in sources.iter().rev().map(Arc::downgrade) {
            known.retain(|one| !one.ptr_eq(&source));
            known.push(source);
        }
    }

    /// Destroys the child of a connect request that was read here and whose listener is gone.
    /// If the listener has migrated, the child may be on a channel that it was on before. With
    /// the file of such a channel, the kernel has closed the child.
    pub(crate) fn destroy_child(&self, kernel_id: u32) {
        if !is_elsewhere(&self.try_destroy(kernel_id)) {
            return;
        }
        let sources: Vec<_> = {
            let sources = self.request_sources();
            sources.iter().filter_map(Weak::upgrade).collect()
        };
        for source in sources.iter().rev() {
            if !is_elsewhere(&source.try_destroy(kernel_id)) {
                return;
            }
        }
    }

    /// The list is valid between any two statements, so a panic that poisons the lock leaves it
    /// valid.
    fn request_sources(&self) -> MutexGuard<'_, Vec<Weak<Self>>> {
        self.request_sources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an id exists, but on another file (`_ucma_find_context`).
fn is_elsewhere(outcome: &io::Result<()>) -> bool {
    let errno = outcome.as_ref().err().and_then(io::Error::raw_os_error);
    errno == Some(libc::EINVAL)
}
