//! The side that is measured against.

use std::net::SocketAddr;

use rdmacm::CLOSE_DEADLINE;
use rdmacm::core::{ConnParam, IdHandle};
use rdmacm::tokio::{CmConnection, Incoming};

use super::load::{Arrived, Load, shape};
use super::terms::agreed;
use super::{Terms, Test, bandwidth, latency};
use crate::args::PerfArgs;
use crate::attend::{Stop, attend};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::serve::{peer_of, reject, serve};
use crate::served::{Served, ServerReport, Verdict};
use crate::terminal;

pub(super) async fn run(args: &PerfArgs, address: SocketAddr, interrupt: &Interrupt) -> Outcome {
    let mut report = ServerReport::new(args.json);
    let peer = |incoming| take_part(incoming, interrupt.clone());
    let over = |served| report.add(served);
    let listened = serve(address, args.server, interrupt, peer, over).await;
    report.outcome(listened, interrupt.has_come(), args.server.persistent)
}

/// One peer, from its request to its end.
async fn take_part(incoming: Incoming, interrupt: Interrupt) -> Served {
    let terms = match Terms::from_private_data(incoming.private_data()) {
        Ok(terms) => terms,
        Err(refusal) => return reject(incoming, refusal),
    };
    Served {
        peer: peer_of(&incoming),
        done: terms.to_string(),
        pings: None,
        verdict: Verdict::from(accept(incoming, terms, &interrupt).await),
    }
}

async fn accept(incoming: Incoming, terms: Terms, interrupt: &Interrupt) -> Result<(), String> {
    let peer = peer_of(&incoming);
    let param = ConnParam::new().private_data(&agreed());
    let incoming = incoming.param(param.map_err(|error| error.to_string())?);
    let make = |id: &IdHandle| Endpoint::new(id, shape(&terms, true));
    let connection = tokio::select! {
        accepted = incoming.accept_with(make) => accepted.map_err(|error| error.to_string())?,
        () = interrupt.wait() => return Ok(()),
    };
    let stop = serve_measuring(&connection, &peer, terms, interrupt).await;
    if stop.is_ok() {
        // The client's last word may have to be acknowledged, and it disconnects next.
        if let Err(error) = connection.closed(CLOSE_DEADLINE).await {
            terminal::remark(&format!("{peer}: has finished and stays: {error}"));
        }
    }
    // The result is known, whether the peer answers or not.
    let _ = connection.close(CLOSE_DEADLINE).await;
    match stop {
        Ok(()) | Err(Stop::Interrupted) => Ok(()),
        Err(stop) => Err(format!("{stop} before it had finished")),
    }
}

/// Does what the test takes of a server, until the client has finished.
async fn serve_measuring(
    connection: &CmConnection<Endpoint>,
    peer: &str,
    terms: Terms,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let work = async {
        let load = Load::exchange(connection.queue_pair(), terms, true).await?;
        terminal::remark(&format!("{peer}: measures {terms}"));
        match terms.test {
            Test::SendBw => bandwidth::receive(&load).await,
            Test::SendLat => latency::send_back(&load).await,
            Test::WriteLat => latency::write_back(&load).await,
            // The device does it all; the memory is kept meanwhile.
            Test::WriteBw | Test::ReadBw | Test::ReadLat => nothing(&load).await,
        }
    };
    // That it has finished may be heard of behind its disconnecting.
    attend(connection, interrupt, CLOSE_DEADLINE, work).await
}

async fn nothing(load: &Load<'_>) -> Result<(), Failure> {
    while !matches!(load.next().await?, Arrived::Finish) {}
    Ok(())
}
