//! Two sides of a stream, with arrays of bytes for memory and a queue for a network.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail in any place"
)]

mod any_words;
mod side;
mod streams;

use std::collections::VecDeque;

use rdmacm_rsocket::{Control, How, MapEntry, Message};
use side::{Delivery, Side};

/// Two connected sides. Requests arrive in the order in which they were posted.
struct Pair {
    sides: [Side; 2],
    /// What was posted to each side and has not arrived.
    networks: [VecDeque<Delivery>; 2],
}

impl Pair {
    fn new(mut one: Side, mut other: Side) -> Self {
        let (first, second) = (one.handshake(), other.handshake());
        one.connected(&second);
        other.connected(&first);
        Self {
            sides: [one, other],
            networks: [VecDeque::new(), VecDeque::new()],
        }
    }

    /// Sends what fits of this data; returns how many bytes.
    fn write(&mut self, from: usize, data: &[u8]) -> usize {
        self.sides[from].write(data, &mut self.networks[1 - from])
    }

    /// Takes up to this many bytes.
    fn read(&mut self, at: usize, bytes: usize) -> Vec<u8> {
        let read = self.sides[at].read(bytes);
        self.update(at);
        read
    }

    fn update(&mut self, at: usize) {
        self.sides[at].send_updates(&mut self.networks[1 - at]);
    }

    /// Writes an entry of the peer's map table, if it can be written now.
    fn map(&mut self, from: usize, index: u16, entry: MapEntry) -> bool {
        self.sides[from].map(index, entry, &mut self.networks[1 - from])
    }

    /// Closes one direction or both; returns what the peer is told.
    fn close(&mut self, from: usize, how: How) -> Option<Control> {
        let control = self.sides[from].shutdown.close(how);
        let delivery = control.map(|control| Delivery::message(Message::Control(control)));
        self.networks[1 - from].extend(delivery);
        control
    }

    /// Sends a word that has no effect.
    fn send(&mut self, from: usize, word: u32) {
        self.networks[1 - from].push_back(Delivery::word(word));
    }

    /// The device places the next write that it has not placed, and acknowledges it. The message
    /// that reports it arrives later.
    fn place(&mut self, at: usize) {
        let next = self.networks[at].iter_mut().find(|one| !one.is_placed());
        if let Some(delivery) = next {
            self.sides[at].place(delivery);
            self.sides[1 - at].acknowledged(delivery.placed());
        }
    }

    /// Something arrives, if anything is on its way, and is acknowledged.
    fn deliver(&mut self, at: usize) -> bool {
        if self.networks[at]
            .front()
            .is_some_and(|one| !one.is_placed())
        {
            self.place(at);
        }
        let Some(delivery) = self.networks[at].pop_front() else {
            return false;
        };
        self.sides[at].arrive(&delivery);
        self.sides[1 - at].acknowledged(delivery.reported());
        self.update(at);
        true
    }

    /// Some requests complete.
    fn complete(&mut self, at: usize, requests: usize) {
        self.sides[at].complete(requests);
        self.update(at);
    }
}
