//! What messages, byte streams, datagrams and endpoints share.

mod closed;
mod device;
mod failure;
mod keep_alive;
mod retries;
mod timeouts;

pub(crate) use closed::{flush_closed, note_closed};
pub(crate) use device::{CompletionHandler, CqKind, Devices, OpenDevice, readiness};
pub(crate) use device::{check_device, open_context};
pub(crate) use failure::Failure;
pub(crate) use keep_alive::{KeepAlive, MIN_KEEP_ALIVE};
pub(crate) use retries::{limit_attr_retries, limit_retries};
pub(crate) use timeouts::{Timeouts, checked_timeout};
