//! The readiness check of a container whose image holds nothing else: `static_container
//! 10.1.0.7:7471` exchanges a message over the device that has the address, or prints what
//! the container lacks.
//!
//! Build it without a dynamic linker, for example with
//! `--target x86_64-unknown-linux-musl`; the image is then `FROM scratch` and
//! `COPY static_container /`.
#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::print_stderr, reason = "an example prints")]

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rdmacm::{Connector, Listener, Node, Result};

const LIMIT: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let Some(address) = std::env::args().nth(1) else {
        eprintln!("usage: static_container ADDRESS");
        return ExitCode::from(2);
    };
    if let Err(error) = exchange(&address) {
        eprintln!("not ready: {error}");
        return ExitCode::FAILURE;
    }
    println!("ready");
    ExitCode::SUCCESS
}

/// Sends a message from this process to itself.
fn exchange(address: &str) -> Result<()> {
    let node = Node::open()?;
    let listener = Listener::options().with_node(&node).bind(address)?;
    let server = listener.local_addr();
    thread::scope(|scope| {
        scope.spawn(|| {
            let connection = listener.accept(LIMIT)?.accept()?;
            connection.receive()?;
            // If this side closed first, the other one might not learn that all has arrived.
            connection.closed(LIMIT)
        });
        let connector = Connector::new(server).with_node(&node).deadline(LIMIT);
        let connection = connector.connect()?;
        connection.set_deadline(LIMIT);
        connection.send(b"ready")?;
        connection.close(LIMIT)
    })
}
