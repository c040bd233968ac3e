//! Events as iterators.

use super::EventChannel;
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::event::Event;

/// An iterator that waits for events, see [`EventChannel::events`].
#[derive(Debug)]
pub struct Events<'channel>(&'channel EventChannel);

impl<'channel> Events<'channel> {
    pub(super) fn new(channel: &'channel EventChannel) -> Self {
        Self(channel)
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event>;

    /// Waits for the next event; returns `None` if a waker ended the wait.
    fn next(&mut self) -> Option<Self::Item> {
        match self.0.next_event(Deadline::Never) {
            Err(Error::Woken) => None,
            event => Some(event),
        }
    }
}

/// An iterator over available events, see [`EventChannel::pending`].
#[derive(Debug)]
pub struct Pending<'channel>(&'channel EventChannel);

impl<'channel> Pending<'channel> {
    pub(super) fn new(channel: &'channel EventChannel) -> Self {
        Self(channel)
    }
}

impl Iterator for Pending<'_> {
    type Item = Result<Event>;

    /// Takes the next event; returns `None` if there is none or a waker woke the
    /// channel.
    fn next(&mut self) -> Option<Self::Item> {
        match self.0.try_next_event() {
            Err(Error::Woken) => None,
            event => event.transpose(),
        }
    }
}
