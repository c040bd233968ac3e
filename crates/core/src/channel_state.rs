//! The state of a channel, shared by the channel and its ids.

use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
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
mod request_sources;

pub(crate) use local_events::LocalEvent;
use local_events::LocalEvents;
use poll_first::PollFirst;
use registrations::Registrations;
pub(crate) use request_sources::HeldSources;
use request_sources::RequestSources;

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
    request_sources: RequestSources<Self>,
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
            request_sources: RequestSources::default(),
            poll_first: PollFirst::default(),
        })
    }

    /// The id to which events with this token belong; `None` if it is gone.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "every event looks one up")]
    pub(crate) fn find(&self, token: Token) -> Option<Arc<I>> {
        self.registrations().get(token)?.upgrade()
    }

    pub(crate) fn registrations(&self) -> MutexGuard<'_, Registrations<I>> {
        self.registrations.lock()
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
        self.request_sources.record(sources);
    }

    /// Keeps open, for a caller that is about to read an event, where a request may have come
    /// through.
    #[inline]
    pub(crate) fn hold_request_sources(&self) -> HeldSources<Self> {
        self.request_sources.hold()
    }

    /// Destroys the child of a connect request that was read here and whose listener is gone.
    /// If the listener has migrated, the child may be on a channel that it was on before, one of
    /// those that were held when the request was read. If a listener has come since then, that
    /// channel may be gone, and the number be that of another id: the child is left, which the
    /// kernel closes with its file (`ucma_close`).
    pub(crate) fn destroy_child(&self, kernel_id: u32, sources: &HeldSources<Self>) {
        if !self.request_sources.are_all(sources) || !is_elsewhere(&self.try_destroy(kernel_id)) {
            return;
        }
        for source in sources.latest_first() {
            if !is_elsewhere(&source.try_destroy(kernel_id)) {
                return;
            }
        }
    }
}

/// Whether an id exists, but on another file (`_ucma_find_context`).
fn is_elsewhere(outcome: &io::Result<()>) -> bool {
    let errno = outcome.as_ref().err().and_then(io::Error::raw_os_error);
    errno == Some(libc::EINVAL)
}
