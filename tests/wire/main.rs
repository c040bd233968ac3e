//! One side of a connection between two guests: the host says on standard input
//! which command of the connection manager comes next, and hears on standard
//! output what came of it and which events there were. It speaks to the kernel
//! in bare commands, so that what is seen is the kernel's behaviour.
#![expect(
    clippy::unwrap_used,
    reason = "a side that cannot go on panics, which ends the test"
)]

mod device;
mod step;

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use rdmacm_init::{Order, Word};

use crate::device::Device;

fn main() {
    let device = Arc::new(Device::open());
    let events = Arc::clone(&device);
    std::thread::spawn(move || {
        loop {
            say(&Word::Event(events.next_event()));
        }
    });
    for line in std::io::stdin().lock().lines() {
        let Order { number, step } = serde_json::from_str(&line.unwrap()).unwrap();
        let device = Arc::clone(&device);
        std::thread::spawn(move || {
            let answer = step::carry_out(&device, step);
            say(&Word::Answer { number, answer });
        });
    }
}

/// One whole line.
fn say(word: &Word) {
    let line = serde_json::to_string(word).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
