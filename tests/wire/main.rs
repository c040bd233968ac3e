//! One side of a connection between two guests: the host says on standard input
//! which command of the connection manager comes next, and hears on standard
//! output what came of it and which events there were. It speaks to the kernel
//! in bare commands, so that what is seen is the kernel's behaviour.
#![expect(
    clippy::unwrap_used,
    reason = "a side that cannot go on panics, which ends the test"
)]

mod device;
mod queue_pairs;
mod step;

use std::io::{BufRead as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use rdmacm_init::{Message, Order};

use crate::device::Device;
use crate::queue_pairs::QueuePairs;

/// What every step and every event needs.
#[derive(Debug)]
struct Side {
    device: Device,
    queue_pairs: QueuePairs,
    /// Held while events are written, so that they stay in order.
    telling: Mutex<()>,
}

fn main() {
    let side = Arc::new(Side {
        device: Device::open(),
        queue_pairs: QueuePairs::default(),
        telling: Mutex::new(()),
    });
    let watching = Arc::clone(&side);
    std::thread::spawn(move || {
        loop {
            watching.device.wait();
            watching.tell_events();
        }
    });
    for line in std::io::stdin().lock().lines() {
        let Order { number, step } = serde_json::from_str(&line.unwrap()).unwrap();
        let side = Arc::clone(&side);
        std::thread::spawn(move || {
            let answer = step::carry_out(&side, step);
            // Before an answer comes whatever had happened before it.
            side.tell_events();
            say(&Message::Answer { number, answer });
        });
    }
}

impl Side {
    fn tell_events(&self) {
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(happening) = self.device.event() {
            say(&Message::Event(happening));
        }
    }
}

/// One whole line.
fn say(message: &Message) {
    let line = serde_json::to_string(message).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
