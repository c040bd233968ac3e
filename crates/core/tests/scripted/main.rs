//! What the library writes to the kernel and makes of its answers, on a device whose
//! answers a test decides.
#![cfg(test)]

mod addresses;
mod causes;
mod channel;
mod connect;
mod dialect;
mod errands;
mod events;
mod groups;
mod migrate;
mod options;
mod queue_pair;
mod room;
mod script;

use std::fmt::Debug;
use std::sync::Arc;

use rdmacm_abi::EventNumber;
use rdmacm_core::{CmId, CommandNumber, Dialect, Error, Event, EventChannel, PortSpace};

use script::Scripted;

/// A channel and the device under it.
struct Fixture {
    device: Arc<Scripted>,
    channel: EventChannel,
}

impl Fixture {
    fn new() -> Self {
        Self::with(Dialect::AnyFamily)
    }

    fn with(dialect: Dialect) -> Self {
        let device = Arc::new(Scripted::new());
        let options = EventChannel::options().device(device.clone());
        let channel = options.dialect(dialect).open().unwrap();
        Self { device, channel }
    }

    /// An id of whose creation the device tells no more.
    fn id(&self, port_space: PortSpace) -> CmId {
        let id = self.channel.create_id(port_space).unwrap();
        self.device.forget();
        id
    }

    /// The next event, which the kernel reports about the id that was made last.
    fn event(&self, number: EventNumber, status: i32) -> Event {
        self.device.report(&self.device.event(number, status));
        self.channel.try_next_event().unwrap().unwrap()
    }

    /// The child of a connect request to the id that was made last.
    fn child(&self) -> CmId {
        let event = self.event(EventNumber::CONNECT_REQUEST, 0);
        event.into_child().unwrap()
    }

    /// The commands that were sent since the last question.
    fn sent(&self) -> Vec<CommandNumber> {
        self.device.take().iter().map(|one| one.number).collect()
    }
}

#[track_caller]
fn errno<T: Debug>(outcome: Result<T, Error>, errno: i32) {
    let error = outcome.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(errno), "{error}");
}

/// Refused before the kernel hears of it.
#[track_caller]
fn invalid<T: Debug>(outcome: Result<T, Error>, words: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}
