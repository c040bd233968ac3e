//! An established connection, whatever its queue pair carries.

use rdmacm_core::{CmAddr, ConnInfo, Deadline, DeviceId, Event, EventKind, IdHandle};

use crate::attempt::{Attempt, peer_gone_or};
use crate::close_reason::CloseReason;
use crate::error::{Cause, Error, Result, Target};
use crate::event_loop::{EventQueue, ManagedId, WaitSource, wait_for};
use crate::stage::Stage;

/// A connection that the connection manager has established.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) id: ManagedId,
    /// The parameters of the peer's queue pair, from its request or reply.
    pub(crate) peer: Option<ConnInfo>,
    pub(crate) private_data: Vec<u8>,
}

impl Established {
    pub(crate) fn new(attempt: &Attempt, stage: Stage, id: ManagedId, event: &Event) -> Self {
        let trace = id.queue().trace();
        trace.stage(stage, || attempt.elapsed());
        trace.established(id.id());
        Self {
            id,
            peer: event.conn(),
            private_data: event.private_data().to_vec(),
        }
    }

    /// An attempt that begins now.
    pub(crate) fn attempt(&self, deadline: Deadline) -> Attempt {
        Attempt::until(self.id.event_loop(), deadline, Target::default())
    }

    pub(crate) fn fail(&self, attempt: &Attempt, stage: Stage, cause: impl Into<Cause>) -> Error {
        attempt.fail_on(self.id.id(), stage, cause)
    }

    /// A failure of a step that has not waited.
    pub(crate) fn fail_at_once(&self, stage: Stage, cause: impl Into<Cause>) -> Error {
        self.fail(&self.attempt(Deadline::Never), stage, cause)
    }

    /// Why it closed, as far as events say so that have been read.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.id.queue().read_close_reason()
    }

    /// Waits until it is closed. Any number of callers may wait, and wait again.
    pub(crate) async fn closed(&self, attempt: &Attempt) -> Result<CloseReason, Cause> {
        let source = CloseReasonSource(self.id.queue());
        Ok(wait_for(self.id.event_loop(), source, attempt.until).await?)
    }

    /// Sends a disconnect request, unless the connection is closed already. Returns
    /// whether the peer's reply is to be waited for.
    pub(crate) fn disconnect(&self) -> Result<bool, Cause> {
        let id = self.id.id();
        // If the peer has disconnected as well, destroying the id replies to it.
        if self.id.queue().disconnect_state().begin() {
            return Ok(false);
        }
        // In a forked child it is the parent's, and the kernel refuses to disconnect.
        let is_own = !self.id.event_loop().is_in_child();
        let disconnected = match self.id.queue_pair().filter(|_| is_own) {
            Some(queue_pair) => id.with_queue_pair(queue_pair.as_ref()).disconnect(),
            None => id.disconnect(),
        };
        match disconnected.map_err(peer_gone_or) {
            Ok(()) => Ok(true),
            Err(Cause::PeerGone) => Ok(false),
            Err(cause) => Err(cause),
        }
    }

    /// Disconnects, and waits until the peer has replied.
    pub(crate) async fn close(&self, attempt: &Attempt) -> Result<()> {
        let failed = |cause| attempt.fail_on(self.id.id(), Stage::Close, cause);
        if !self.disconnect().map_err(failed)? {
            return Ok(());
        }
        let reason = self.closed(attempt).await.map_err(failed)?;
        let disconnected = reason.kind() == EventKind::Disconnected;
        match reason.failure().filter(|_| disconnected) {
            // The peer did not reply.
            Some(failure) if failure.raw_os_error() == Some(libc::ETIMEDOUT) => {
                Err(failed(Cause::Event(failure)))
            }
            // It was closed before: the peer disconnected first or is lost, or the device is gone.
            _ => Ok(()),
        }
    }

    pub(crate) fn local_addr(&self) -> Result<CmAddr> {
        known_address(&self.id, Stage::Bind, IdHandle::local_addr)
    }

    pub(crate) fn peer_addr(&self) -> Result<CmAddr> {
        known_address(&self.id, Stage::Bind, IdHandle::peer_addr)
    }
}

/// An address of an id that has both.
pub(crate) fn known_address(
    id: &ManagedId,
    stage: Stage,
    query: impl FnOnce(&IdHandle) -> rdmacm_core::Result<Option<CmAddr>>,
) -> Result<CmAddr> {
    let address = query(id.id()).and_then(|address| address.ok_or(rdmacm_core::Error::IdDestroyed));
    address.map_err(|error| query_error(id, stage, error))
}

/// The device that an id is attached to.
pub(crate) fn known_device(id: &ManagedId, stage: Stage) -> Result<Option<DeviceId>> {
    let addresses = id.id().addresses();
    let addresses = addresses.map_err(|error| query_error(id, stage, error))?;
    Ok(addresses.device)
}

/// The failure of a query.
fn query_error(id: &ManagedId, stage: Stage, error: rdmacm_core::Error) -> Error {
    let attempt = Attempt::new(id.event_loop(), None, Target::default());
    attempt.fail_on(id.id(), stage, error)
}

/// Why a connection closed, for any number of waiters.
#[derive(Debug)]
pub(crate) struct CloseReasonSource<'a>(pub(crate) &'a EventQueue);

impl WaitSource for CloseReasonSource<'_> {
    type Item = CloseReason;

    fn take(&mut self) -> Option<CloseReason> {
        self.0.read_close_reason()
    }

    fn register(&mut self, key: u64, waker: &std::task::Waker) {
        self.0.register(key, waker);
    }

    fn deregister(&mut self, key: u64) {
        self.0.deregister(key);
    }
}
