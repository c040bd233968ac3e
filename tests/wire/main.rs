//! One side of a connection between two guests. The program reads steps from standard input,
//! each a command of the connection manager, and writes answers and events to standard output.
//! It sends the commands to the kernel without a library between, so that tests observe the
//! kernel's behaviour.
#![expect(clippy::unwrap_used, reason = "a panic of this program fails the test")]

mod device;
mod queue_pairs;
mod step;

use std::io::{BufRead as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use rdmacm_init::{Message, NumberedStep};

use crate::device::Device;
use crate::queue_pairs::QueuePairs;

/// What the threads of steps and events share.
#[derive(Debug)]
struct Server {
    device: Device,
    queue_pairs: QueuePairs,
    /// Locked while events are written, so that they stay in order.
    event_order: Mutex<()>,
}

fn main() {
    let server = Arc::new(Server {
        device: Device::open(),
        queue_pairs: QueuePairs::default(),
        event_order: Mutex::new(()),
    });
    let watcher = Arc::clone(&server);
    std::thread::spawn(move || {
        loop {
            watcher.device.wait();
            watcher.write_events();
        }
    });
    for line in std::io::stdin().lock().lines() {
        let NumberedStep { number, step } = serde_json::from_str(&line.unwrap()).unwrap();
        let server = Arc::clone(&server);
        std::thread::spawn(move || {
            let answer = step::execute(&server, step);
            // Events that are pending now are written before the answer.
            server.write_events();
            write_line(&Message::Answer { number, answer });
        });
    }
}

impl Server {
    fn write_events(&self) {
        let _order = self
            .event_order
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while let Some(event) = self.device.next_event() {
            write_line(&Message::Event(event));
        }
    }
}

/// Writes one line.
fn write_line(message: &Message) {
    let line = serde_json::to_string(message).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
