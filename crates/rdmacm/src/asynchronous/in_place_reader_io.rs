//! Reading in place in tasks.

use std::io;
use std::task::{Context, Poll, ready};

use super::cooperation::poll_in_turn;
use super::in_place_reader::InPlaceReader;
use crate::stream::Reading;

impl InPlaceReader {
    /// The bytes that have arrived, once some have; none at the end of the stream.
    pub(super) fn poll_received(&self, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let inner = &self.half.inner;
        let checked = poll_in_turn(context, |context| {
            inner.poll_read(context, Reading::Check, &mut [])
        });
        Poll::Ready(match ready!(checked)? {
            // Of a half that was shut down, nothing is read any more.
            0 => Ok(&[]),
            _ => Ok(self.received()),
        })
    }
}
