//! A wire between the network cards of two guests.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;

use crate::guest::WireEnd;

/// Longer than any frame that a guest's card sends.
const MAX_FRAME: usize = 256 * 1024;

/// Forwards frames in both directions. It is a part of this process, so that one guest can be
/// replaced by another.
#[derive(Debug, Default)]
pub(crate) struct Wire([End; 2]);

/// The card at one end, if one is attached.
type End = Arc<Mutex<Option<UnixStream>>>;

impl Wire {
    /// Attaches a card, replacing the one before it.
    pub(crate) fn attach(&self, end: WireEnd, card: UnixStream) -> anyhow::Result<()> {
        let [near, far] = &self.0;
        let (own, other) = match end {
            WireEnd::Near => (near, far),
            WireEnd::Far => (far, near),
        };
        let from = card.try_clone().context("share a wire")?;
        *lock(own) = Some(card);
        let to = Arc::clone(other);
        thread::Builder::new()
            .name("wire".to_owned())
            .spawn(move || forward(from, &to))
            .context("start a thread")?;
        Ok(())
    }
}

/// Forwards frames until the sender ends. A frame is lost if no card is attached. A frame for a
/// frozen guest waits in the socket, as in the memory of a real card.
fn forward(mut from: UnixStream, to: &End) {
    let mut frame = Vec::new();
    while receive(&mut from, &mut frame).is_ok() {
        if let Some(card) = lock(to).as_mut() {
            // An error means that the receiving guest has ended.
            let _ = card.write_all(&frame);
        }
    }
}

/// Reads one frame as QEMU writes it to a stream: the length, then the bytes.
fn receive(from: &mut UnixStream, frame: &mut Vec<u8>) -> io::Result<()> {
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix)?;
    let length = usize::try_from(u32::from_be_bytes(prefix)).unwrap_or(usize::MAX);
    if length > MAX_FRAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    frame.clear();
    frame.extend_from_slice(&prefix);
    frame.resize(prefix.len() + length, 0);
    from.read_exact(&mut frame[prefix.len()..])
}

fn lock(end: &End) -> std::sync::MutexGuard<'_, Option<UnixStream>> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: &[u8] = b"\0\0\0\x05hello";

    fn received(card: &mut UnixStream) -> Vec<u8> {
        let mut frame = vec![0; FRAME.len()];
        card.read_exact(&mut frame).unwrap();
        frame
    }

    fn card(wire: &Wire, end: WireEnd) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        wire.attach(end, theirs).unwrap();
        ours
    }

    #[test]
    fn frames_are_forwarded_in_both_directions() {
        let wire = Wire::default();
        let (mut near, mut far) = (card(&wire, WireEnd::Near), card(&wire, WireEnd::Far));
        near.write_all(FRAME).unwrap();
        assert_eq!(received(&mut far), FRAME);
        far.write_all(FRAME).unwrap();
        assert_eq!(received(&mut near), FRAME);
    }

    #[test]
    fn a_card_can_be_replaced() {
        let wire = Wire::default();
        let mut near = card(&wire, WireEnd::Near);
        drop(card(&wire, WireEnd::Far));
        let mut far = card(&wire, WireEnd::Far);
        near.write_all(FRAME).unwrap();
        assert_eq!(received(&mut far), FRAME);
        far.write_all(FRAME).unwrap();
        assert_eq!(received(&mut near), FRAME);
    }
}
