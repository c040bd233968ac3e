//! Copying in both directions.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::io::{self, IsTerminal};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::terminal::Progress;

/// How many bytes are copied at once.
const PIECE: usize = 64 << 10;

/// A direction, as seen from this side.
#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Sent,
    Received,
}

/// How much was copied in each direction so far.
pub(super) struct Transfer {
    sent: Cell<u64>,
    received: Cell<u64>,
    /// Whether a piece of the input is read, and not sent.
    is_sending: Cell<bool>,
    /// None where it would mix with what the peer sends.
    progress: Option<RefCell<Progress>>,
}

/// What a copy failed to do.
#[derive(Debug)]
pub(super) enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

impl From<CopyError> for io::Error {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Read(error) | CopyError::Write(error) => error,
        }
    }
}

impl Transfer {
    pub(super) fn new() -> Self {
        let mixes = io::stdout().is_terminal();
        Self {
            sent: Cell::new(0),
            received: Cell::new(0),
            is_sending: Cell::new(false),
            progress: (!mixes).then(|| RefCell::new(Progress::new())),
        }
    }

    /// Copies until `from` ends, and ends `to` then.
    pub(super) async fn copy(
        &self,
        direction: Direction,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> Result<(), CopyError> {
        let mut piece = vec![0; PIECE];
        loop {
            let count = from.read(&mut piece).await.map_err(CopyError::Read)?;
            let bytes = piece.get(..count).unwrap_or_default();
            if bytes.is_empty() {
                return to.shutdown().await.map_err(CopyError::Write);
            }
            if matches!(direction, Direction::Sent) {
                self.is_sending.set(true);
            }
            to.write_all(bytes).await.map_err(CopyError::Write)?;
            to.flush().await.map_err(CopyError::Write)?;
            self.copied(direction, bytes.len() as u64);
        }
    }

    fn copied(&self, direction: Direction, bytes: u64) {
        let count = match direction {
            Direction::Sent => {
                self.is_sending.set(false);
                &self.sent
            }
            Direction::Received => &self.received,
        };
        count.set(count.get() + bytes);
        if let Some(progress) = &self.progress {
            progress.borrow_mut().show(|| self.counts());
        }
    }

    /// # Errors
    /// Some of the input was read, and not sent.
    pub(super) fn check_that_all_is_sent(&self) -> io::Result<()> {
        if self.is_sending.get() {
            let lost = "the peer ended the stream before all of the input was sent";
            return Err(io::Error::other(lost));
        }
        Ok(())
    }

    /// Why it failed, and how far it came.
    pub(super) fn failed(&self, error: &impl Display) -> String {
        format!("{error} after {}", self.counts())
    }

    fn counts(&self) -> String {
        let (sent, received) = (self.sent.get(), self.received.get());
        format!("{sent} bytes sent, {received} bytes received")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn every_byte_is_copied_and_counted() {
        let transfer = Transfer::new();
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * PIECE + 1).collect();
        let mut copied = Vec::new();
        let from = Cursor::new(&bytes);
        transfer
            .copy(Direction::Sent, from, &mut copied)
            .await
            .unwrap();
        assert_eq!(copied, bytes);
        let none = transfer.copy(Direction::Received, tokio::io::empty(), &mut copied);
        none.await.unwrap();
        let expected = format!("lost after {} bytes sent, 0 bytes received", bytes.len());
        assert_eq!(transfer.failed(&"lost"), expected);
        transfer.check_that_all_is_sent().unwrap();
    }

    #[tokio::test]
    async fn input_that_is_not_sent_is_missed() {
        let transfer = Transfer::new();
        let (to, _unread) = tokio::io::duplex(1);
        let copy = transfer.copy(Direction::Sent, &b"abc"[..], to);
        assert!(timeout(Duration::ZERO, copy).await.is_err());
        transfer.check_that_all_is_sent().unwrap_err();
    }
}
