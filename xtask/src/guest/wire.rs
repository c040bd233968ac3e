//! A wire between two guests: what the card at one end sends, the card at the
//! other receives.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;

use crate::guest::Station;

/// Longer than any frame a card of ours sends.
const LONGEST: usize = 256 * 1024;

/// It lies here and not in QEMU, so that a guest can go and another take its
/// place at the same end.
#[derive(Debug, Default)]
pub(crate) struct Wire([End; 2]);

/// The card at one end, if there is one.
type End = Arc<Mutex<Option<UnixStream>>>;

impl Wire {
    /// Plugs a card in, in place of the one before it.
    pub(crate) fn plug(&self, station: Station, card: UnixStream) -> anyhow::Result<()> {
        let [near, far] = &self.0;
        let (own, other) = match station {
            Station::Near => (near, far),
            Station::Far => (far, near),
        };
        let from = card.try_clone().context("share a wire")?;
        *lock(own) = Some(card);
        let to = Arc::clone(other);
        thread::Builder::new()
            .name("wire".to_owned())
            .spawn(move || pass_on(from, &to))
            .context("start a thread")?;
        Ok(())
    }
}

/// Until the sender is gone. A frame for nobody is lost; one for a guest that
/// stands still waits, as in the memory of a real card.
fn pass_on(mut from: UnixStream, to: &End) {
    let mut frame = Vec::new();
    while receive(&mut from, &mut frame).is_ok() {
        if let Some(card) = lock(to).as_mut() {
            // Whoever died meanwhile hears nothing any more.
            let _ = card.write_all(&frame);
        }
    }
}

/// One frame as QEMU writes it to a stream: its length goes before it.
fn receive(from: &mut UnixStream, frame: &mut Vec<u8>) -> io::Result<()> {
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix)?;
    let length = usize::try_from(u32::from_be_bytes(prefix)).unwrap_or(usize::MAX);
    if length > LONGEST {
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

    fn heard(card: &mut UnixStream) -> Vec<u8> {
        let mut frame = vec![0; FRAME.len()];
        card.read_exact(&mut frame).unwrap();
        frame
    }

    fn card(wire: &Wire, station: Station) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        wire.plug(station, theirs).unwrap();
        ours
    }

    #[test]
    fn frames_pass_both_ways() {
        let wire = Wire::default();
        let (mut near, mut far) = (card(&wire, Station::Near), card(&wire, Station::Far));
        near.write_all(FRAME).unwrap();
        assert_eq!(heard(&mut far), FRAME);
        far.write_all(FRAME).unwrap();
        assert_eq!(heard(&mut near), FRAME);
    }

    #[test]
    fn a_card_takes_the_place_of_one_that_is_gone() {
        let wire = Wire::default();
        let mut near = card(&wire, Station::Near);
        drop(card(&wire, Station::Far));
        let mut far = card(&wire, Station::Far);
        near.write_all(FRAME).unwrap();
        assert_eq!(heard(&mut far), FRAME);
        far.write_all(FRAME).unwrap();
        assert_eq!(heard(&mut near), FRAME);
    }
}
