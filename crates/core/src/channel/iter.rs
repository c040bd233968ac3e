//! Events as iterators.

use super::EventChannel;
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::event::Event;

/// Events of a channel as they come, see [`EventChannel::events`].
#[derive(Debug)]
pub struct Events<'channel>(&'channel EventChannel);

impl<'channel> Events<'channel> {
    pub(super) fn new(channel: &'channel EventChannel) -> Self {
        Self(channel)
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event>;

    /// Waits for the next event; ends when a waker ends the wait.
    fn next(&mut self) -> Option<Self::Item> {
        match self.0.next_event(Deadline::Never) {
            Err(Error::Woken) => None,
            event => Some(event),
        }
    }
}

/// The events a channel has now, see [`EventChannel::pending`].
#[derive(Debug)]
pub struct Pending<'channel>(&'channel EventChannel);

impl<'channel> Pending<'channel> {
    pub(super) fn new(channel: &'channel EventChannel) -> Self {
        Self(channel)
    }
}

impl Iterator for Pending<'_> {
    type Item = Result<Event>;

    /// Takes the next event; ends when there is none or a waker asks for
    /// attention.
    fn next(&mut self) -> Option<Self::Item> {
        match self.0.try_next_event() {
            Err(Error::Woken) => None,
            event => event.transpose(),
        }
    }
}
