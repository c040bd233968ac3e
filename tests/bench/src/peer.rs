//! The peers of workloads.

use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use rdmacm::{Incoming, Listener, MessageOptions, Result, StreamOptions};
use rdmacm_core::{AccessFlags, Deadline, IdHandle};

use crate::work::{PeerKind, QueuePairs};

/// Receive requests of a peer: more than a workload has messages under way.
const RECEIVES: u32 = 256;
/// The longest message, and the memory that clients access.
const LARGE: usize = 1 << 20;
/// Receive requests for large messages.
const LARGE_RECEIVES: u32 = 16;
/// How late a late echo is: whoever waits for it sleeps by then.
const LATE: Duration = Duration::from_millis(2);

/// Serves until the process is killed; prints the port first.
pub(crate) fn serve(address: IpAddr, peer: PeerKind) -> anyhow::Result<()> {
    ensure!(peer != PeerKind::None, "the workload has no peer");
    let queue_pairs = QueuePairs::default();
    let serve_one = |incoming| match peer {
        PeerKind::None => Ok(()),
        PeerKind::Sink => sink(incoming),
        PeerKind::Echo => echo(incoming, Duration::ZERO),
        PeerKind::LateEcho => echo(incoming, LATE),
        PeerKind::Acceptor => accept(incoming, &queue_pairs),
        PeerKind::MessageAcceptor => accept_messages(incoming),
        PeerKind::Memory => memory(incoming),
        PeerKind::StreamEcho => echo_stream(incoming),
    };
    let listener = Listener::bind((address, 0))?;
    println!("{}", listener.local_addr().port());
    thread::scope(|scope| {
        for incoming in listener.incoming() {
            let serve_one = &serve_one;
            scope.spawn(move || {
                if let Err(error) = incoming.and_then(serve_one) {
                    eprintln!("{error}");
                }
            });
        }
    });
    Ok(())
}

fn sink(incoming: Incoming) -> Result<()> {
    let connection = incoming.accept_messages(MessageOptions::new().receives(RECEIVES))?;
    while connection.receive()?.is_some() {}
    Ok(())
}

fn echo(incoming: Incoming, late: Duration) -> Result<()> {
    let connection = incoming.accept_messages(MessageOptions::new().receives(RECEIVES))?;
    while let Some(message) = connection.receive()? {
        if !late.is_zero() {
            thread::sleep(late);
        }
        connection.send(&message)?;
    }
    Ok(())
}

fn echo_stream(incoming: Incoming) -> Result<()> {
    let stream = incoming.accept_stream(StreamOptions::new())?;
    if let Err(error) = io::copy(&mut &stream, &mut &stream) {
        eprintln!("{error}");
    }
    Ok(())
}

fn accept(incoming: Incoming, queue_pairs: &QueuePairs) -> Result<()> {
    let create = |id: &IdHandle| queue_pairs.create(id);
    let connection = incoming.accept_with(create)?;
    connection.closed(Deadline::Never)?;
    Ok(())
}

fn accept_messages(incoming: Incoming) -> Result<()> {
    let connection = incoming.accept()?;
    connection.closed(Deadline::Never)?;
    Ok(())
}

fn memory(incoming: Incoming) -> Result<()> {
    let options = MessageOptions::new().size(LARGE).receives(LARGE_RECEIVES);
    let connection = incoming.accept_messages(options)?;
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    let memory = connection.expose(LARGE, access)?;
    if connection.receive()?.is_some() {
        connection.send(&memory.remote().to_bytes())?;
    }
    while connection.receive()?.is_some() {}
    Ok(())
}
