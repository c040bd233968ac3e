//! The peers of workloads.

mod streams;

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use rdmacm::{Incoming, Listener, MessageOptions, Result, tokio as on_tokio};
use rdmacm_core::{AccessFlags, Deadline, IdHandle};

use crate::work::{PeerKind, QueuePairs};

/// Receive requests of a peer: more than a workload has messages in flight.
const RECEIVES: u32 = 256;
/// The longest message, and the memory that clients access.
const LARGE: usize = 1 << 20;
/// Receive requests for large messages.
const LARGE_RECEIVES: u32 = 16;
/// How late a late echo is: whoever waits for it sleeps by then.
const LATE: Duration = Duration::from_millis(2);

/// Serves until the process is killed; prints the port first.
pub(crate) fn serve(address: IpAddr, peer: PeerKind) -> anyhow::Result<()> {
    match peer {
        PeerKind::None => bail!("the workload has no peer"),
        PeerKind::Acceptor | PeerKind::MessageAcceptor => accept_all(address, peer),
        PeerKind::Sink => serve_each(address, sink),
        PeerKind::Echo => serve_each(address, |incoming| echo(incoming, Duration::ZERO)),
        PeerKind::LateEcho => serve_each(address, |incoming| echo(incoming, LATE)),
        PeerKind::Memory => serve_each(address, memory),
        PeerKind::StreamEcho => {
            serve_each(address, |incoming| streams::echo(incoming, Duration::ZERO))
        }
        PeerKind::LateStreamEcho => serve_each(address, |incoming| streams::echo(incoming, LATE)),
        PeerKind::StreamSink => serve_each(address, streams::sink),
        PeerKind::TcpEcho => streams::echo_tcp(address),
        PeerKind::TcpSink => streams::sink_tcp(address),
    }
}

/// Serves each connection on a thread of its own.
fn serve_each(
    address: IpAddr,
    serve_one: impl Fn(Incoming) -> Result<()> + Sync,
) -> anyhow::Result<()> {
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

/// Accepts connections on one thread, as the C program does, and keeps them until they close.
fn accept_all(address: IpAddr, peer: PeerKind) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = on_tokio::Listener::bind((address, 0))?;
        println!("{}", listener.local_addr().port());
        let queue_pairs = Arc::new(QueuePairs::default());
        loop {
            let incoming = listener.accept(Deadline::Never).await?;
            let queue_pairs = Arc::clone(&queue_pairs);
            tokio::spawn(async move {
                let served = match peer {
                    PeerKind::MessageAcceptor => accept_messages(incoming).await,
                    _ => accept(incoming, &queue_pairs).await,
                };
                if let Err(error) = served {
                    eprintln!("{error}");
                }
            });
        }
    })
}

async fn accept(incoming: on_tokio::Incoming, queue_pairs: &QueuePairs) -> Result<()> {
    let create = |id: &IdHandle| queue_pairs.create(id);
    let connection = incoming.accept_with(create).await?;
    connection.closed(Deadline::Never).await?;
    Ok(())
}

async fn accept_messages(incoming: on_tokio::Incoming) -> Result<()> {
    let connection = incoming.accept().await?;
    connection.closed(Deadline::Never).await?;
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
