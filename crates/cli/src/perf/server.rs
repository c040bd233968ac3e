//! The side that is measured against.

use std::net::SocketAddr;

use rdmacm::CLOSE_DEADLINE;
use rdmacm::core::{ConnParam, IdHandle};
use rdmacm::tokio::{Connection, Incoming};

use super::load::{Load, shape};
use super::terms::agreed;
use super::{Terms, Test, bandwidth, latency};
use crate::args::PerfArgs;
use crate::attend::{Stop, attend};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::serve::{peer_of, serve};
use crate::served::{Served, ServerReport};

pub(super) async fn run(args: &PerfArgs, address: SocketAddr, interrupt: &Interrupt) -> Outcome {
    let mut report = ServerReport::new(args.json);
    let peer = |incoming| take_part(incoming, interrupt.clone());
    let over = |served| report.add(served);
    let listened = serve(address, args.persistent, interrupt, peer, over).await;
    report.outcome(listened, interrupt.has_come(), args.persistent)
}

/// One peer, from its request to its end.
async fn take_part(incoming: Incoming, interrupt: Interrupt) -> Served {
    let peer = peer_of(&incoming);
    let (done, failure) = match Terms::from_private_data(incoming.private_data()) {
        Ok(terms) => {
            let done = terms.to_string();
            (done, accept(incoming, terms, &interrupt).await.err())
        }
        Err(refusal) => {
            // A peer that has gone needs no words.
            let _ = incoming.reject(refusal.as_bytes());
            ("refused".to_owned(), Some(refusal))
        }
    };
    Served {
        peer,
        done,
        pings: None,
        failure,
    }
}

async fn accept(incoming: Incoming, terms: Terms, interrupt: &Interrupt) -> Result<(), String> {
    let param = ConnParam::new().private_data(&agreed());
    let incoming = incoming.param(param.map_err(|error| error.to_string())?);
    let make = |id: &IdHandle| Endpoint::new(id, shape(&terms, true));
    let connection = tokio::select! {
        accepted = incoming.accept_with(make) => accepted.map_err(|error| error.to_string())?,
        () = interrupt.wait() => return Ok(()),
    };
    let stop = serve_measuring(&connection, terms, interrupt).await;
    // The result is known, whether the peer answers or not.
    let _ = connection.close(CLOSE_DEADLINE).await;
    match stop {
        // The client says when it is enough.
        Ok(()) | Err(Stop::Interrupted) => Ok(()),
        Err(Stop::Ended(ending)) if ending.failure().is_none() => Ok(()),
        Err(stop) => Err(stop.to_string()),
    }
}

/// Does what the test takes of a server, until the peer parts.
async fn serve_measuring(
    connection: &Connection<Endpoint>,
    terms: Terms,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let work = async {
        let load = Load::exchange(connection.queue_pair(), terms, true).await?;
        match terms.test {
            Test::SendBw => bandwidth::receive(&load).await,
            Test::SendLat => latency::send_back(&load).await,
            Test::WriteLat => latency::write_back(&load).await,
            // The device does it all; the memory is kept meanwhile.
            Test::WriteBw | Test::ReadBw | Test::ReadLat => nothing(&load).await,
        }
    };
    attend(connection, interrupt, work).await
}

async fn nothing(load: &Load<'_>) -> Result<(), Failure> {
    loop {
        load.next().await?;
    }
}
