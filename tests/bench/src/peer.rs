//! The peers of workloads.

use std::net::IpAddr;
use std::thread;

use anyhow::ensure;
use rdmacm::{Incoming, Listener, MessageOptions, Result};

use crate::work::PeerKind;

/// Receive requests of a peer: more than a workload has messages under way.
const RECEIVES: u32 = 256;

/// Serves until the process is killed; prints the port first.
pub(crate) fn serve(address: IpAddr, peer: PeerKind) -> anyhow::Result<()> {
    ensure!(peer != PeerKind::None, "the workload has no peer");
    let echo = peer == PeerKind::Echo;
    let listener = Listener::bind((address, 0))?;
    println!("{}", listener.local_addr().port());
    thread::scope(|scope| {
        for incoming in listener.incoming() {
            scope.spawn(move || {
                if let Err(error) = incoming.and_then(|incoming| serve_one(incoming, echo)) {
                    eprintln!("{error}");
                }
            });
        }
    });
    Ok(())
}

fn serve_one(incoming: Incoming, echo: bool) -> Result<()> {
    let options = MessageOptions::new().receives(RECEIVES);
    let connection = incoming.accept_messages(options)?;
    while let Some(message) = connection.receive()? {
        if echo {
            connection.send(&message)?;
        }
    }
    Ok(())
}
