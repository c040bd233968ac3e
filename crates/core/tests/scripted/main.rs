//! The commands that the library writes to the kernel, and how it handles their
//! responses, over a kernel whose responses a test scripts.
#![cfg(test)]

mod address_abi;
mod addresses;
mod channel;
mod connect;
mod error_causes;
mod events;
mod groups;
mod ids;
mod migrate;
mod options;
mod private_data;
mod queue_pair;
mod resolutions;
mod script;

use std::fmt::Debug;
use std::sync::Arc;

use rdmacm_abi::EventNumber;
use rdmacm_core::{
    AddressAbi, ChannelOptions, CmId, CommandNumber, Error, Event, EventChannel, PortSpace,
};

use script::Scripted;

/// A channel and the scripted kernel under it.
struct Fixture {
    ucma: Arc<Scripted>,
    channel: EventChannel,
}

impl Fixture {
    fn new() -> Self {
        Self::with(AddressAbi::AnyFamily)
    }

    fn with(address_abi: AddressAbi) -> Self {
        let ucma = Arc::new(Scripted::new());
        let options = options(&ucma).address_abi(address_abi);
        let channel = options.open().unwrap();
        Self { ucma, channel }
    }

    /// A new id, whose creation is not among the commands [`sent`](Self::sent).
    fn id(&self, port_space: PortSpace) -> CmId {
        let id = self.channel.create_id(port_space).unwrap();
        self.ucma.forget();
        id
    }

    /// Queues an event of the id that was created last, and reads it.
    fn event(&self, number: EventNumber, status: i32) -> Event {
        self.ucma.report(&self.ucma.event(number, status));
        self.channel.try_next_event().unwrap().unwrap()
    }

    /// The child of a connect request to the id that was created last.
    fn child(&self) -> CmId {
        let event = self.event(EventNumber::CONNECT_REQUEST, 0);
        event.into_child().unwrap()
    }

    /// The commands that were sent since the last call.
    fn sent(&self) -> Vec<CommandNumber> {
        self.ucma.take().iter().map(|one| one.number).collect()
    }
}

/// Options of a channel over this kernel.
fn options(kernel: &Arc<Scripted>) -> ChannelOptions {
    let devices = Arc::clone(kernel);
    EventChannel::options()
        .ucma(kernel.clone())
        .devices(devices)
}

#[track_caller]
fn errno<T: Debug>(outcome: Result<T, Error>, errno: i32) {
    let error = outcome.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(errno), "{error}");
}

/// Asserts that the library refused the call before it reached the kernel.
#[track_caller]
fn invalid<T: Debug>(outcome: Result<T, Error>, words: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}
