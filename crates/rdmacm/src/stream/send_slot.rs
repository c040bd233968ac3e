//! Memory that was reserved for the next bytes of a stream.

use std::io;
use std::ops::{Deref, DerefMut};

use rdmacm_verbs::Buffer;

use super::connection::StreamConnection;
use super::status::StreamInterest;
use crate::error::Cause;
use crate::stage::Stage;

/// Memory for the next bytes of a stream, from [`RdmaStream::reserve`](crate::RdmaStream::reserve):
/// what is written there is sent from there, without a copy. It has the bytes of an earlier use.
///
/// Dropping it sends nothing. One that is forgotten takes its memory from the stream: without any,
/// `reserve` waits forever.
#[derive(Debug)]
#[must_use = "nothing is sent until it is committed"]
pub struct SendSlot<'a> {
    stream: &'a StreamConnection,
    /// None once it was sent.
    buffer: Option<Buffer>,
    length: usize,
}

impl SendSlot<'_> {
    /// Sends the first `bytes` of it, or all of it if it has fewer. Never waits.
    ///
    /// # Errors
    /// Those of writing.
    pub fn commit(mut self, bytes: usize) -> io::Result<()> {
        let bytes = bytes.min(self.length);
        let (stream, buffer) = (self.stream, &mut self.buffer);
        let commit = || stream.queue_pair().commit(buffer, bytes);
        if let Some(Err(cause)) = stream.transfer(commit) {
            return Err(stream.fail_at_once(Stage::Send, cause).into());
        }
        Ok(())
    }
}

impl Deref for SendSlot<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let buffer = self.buffer.as_deref();
        let bytes = buffer.and_then(|buffer| buffer.get(..self.length));
        bytes.unwrap_or_default()
    }
}

impl DerefMut for SendSlot<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let buffer = self.buffer.as_deref_mut();
        let bytes = buffer.and_then(|buffer| buffer.get_mut(..self.length));
        bytes.unwrap_or_default()
    }
}

impl Drop for SendSlot<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.stream.queue_pair().give_back(buffer);
        }
    }
}

impl StreamConnection {
    /// Reserves memory for the next bytes, once the peer has room for at least one.
    pub(crate) async fn reserve(&self, bytes: usize) -> io::Result<SendSlot<'_>> {
        if bytes == 0 {
            let reason = "a reservation of no bytes";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let made = self.queue_pair().make_send_buffers();
        made.map_err(|error| self.fail_at_once(Stage::Register, Cause::device(error)))?;
        let mut buffer = None;
        let mut reserve = || self.transfer(|| self.queue_pair().reserve(&mut buffer, bytes));
        // What is refused is repeated, or written instead.
        let announced = StreamInterest::Writable;
        let length = self.progress(announced, Stage::Send, &mut reserve);
        let length = length.await?;
        Ok(SendSlot {
            stream: self,
            buffer,
            length,
        })
    }
}
