//! The server of `rdmacm perf`.

use std::net::SocketAddr;

use rdmacm::CLOSE_DEADLINE;
use rdmacm::core::{ConnParam, IdHandle};
use rdmacm::tokio::{CmConnection, Incoming};
use rdmacm_rsocket::Handshake;

use super::parameters::agreed;
use super::side::{TestEvent, TestSide, shape};
use super::{Parameters, Test, bandwidth, latency, streams};
use crate::args::PerfArgs;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keep_alive::SILENCE_LIMIT;
use crate::outcome::Outcome;
use crate::serve::{peer_of, reject, serve};
use crate::server_report::{PeerOutcome, PeerResult, ServerReport};
use crate::terminal;
use crate::until_closed::{WorkError, run_until_closed};

pub(super) async fn run(args: &PerfArgs, address: SocketAddr, interrupt: &Interrupt) -> Outcome {
    let mut report = ServerReport::new(args.json);
    let peer = |incoming| take_part(incoming, interrupt.clone());
    let over = async |served| report.add(served).await;
    let listened = serve(address, args.server, interrupt, peer, over).await;
    report.outcome(listened, interrupt.is_set(), args.server.persistent)
}

/// Serves one peer, from its request to its disconnect.
async fn take_part(incoming: Incoming, interrupt: Interrupt) -> PeerResult {
    if Handshake::from_bytes(incoming.private_data()).is_ok() {
        return streams::take_part(incoming, &interrupt).await;
    }
    let parameters = match Parameters::from_private_data(incoming.private_data()) {
        Ok(parameters) => parameters,
        Err(refusal) => return reject(incoming, refusal),
    };
    PeerResult {
        peer: peer_of(&incoming),
        done: parameters.to_string(),
        pings: None,
        verdict: PeerOutcome::from(accept(incoming, parameters, &interrupt).await),
    }
}

async fn accept(
    incoming: Incoming,
    parameters: Parameters,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let peer = peer_of(&incoming);
    let param = ConnParam::new().private_data(&agreed());
    let incoming = incoming.param(param.map_err(|error| error.to_string())?);
    let make = |id: &IdHandle| Endpoint::new(id, shape(&parameters, true));
    let connection = tokio::select! {
        accepted = incoming.accept_with(make) => accepted.map_err(|error| error.to_string())?,
        () = interrupt.wait() => return Ok(()),
    };
    let stop = serve_measuring(&connection, &peer, parameters, interrupt).await;
    if stop.is_ok() {
        // The client's last message may still need an acknowledgement; the client disconnects.
        if let Err(error) = connection.closed(CLOSE_DEADLINE).await {
            terminal::print_notice(&format!("{peer}: has finished and stays: {error}"));
        }
    }
    // The result does not depend on whether the peer answers.
    let _ = connection.close(CLOSE_DEADLINE).await;
    match stop {
        Ok(()) | Err(WorkError::Interrupted) => Ok(()),
        Err(stop) => Err(format!("{stop} before it had finished")),
    }
}

/// Plays the server's part of the test until the client ends it.
async fn serve_measuring(
    connection: &CmConnection<Endpoint>,
    peer: &str,
    parameters: Parameters,
    interrupt: &Interrupt,
) -> Result<(), WorkError> {
    let work = async {
        let side = TestSide::exchange(connection.queue_pair(), parameters, true).await?;
        terminal::print_notice(&format!("{peer}: measures {parameters}"));
        match parameters.test {
            Test::SendBw => bandwidth::receive(&side).await,
            Test::SendLat => latency::send_back(&side).await,
            Test::WriteLat => latency::write_back(&side).await,
            // The device does all the work; the memory must stay registered.
            _ => until_finish(&side).await,
        }
    };
    // The message that ends the test may be processed after the disconnect.
    let silence = parameters.test.has_replies().then_some(SILENCE_LIMIT);
    run_until_closed(connection, Some(interrupt), silence, CLOSE_DEADLINE, work).await
}

async fn until_finish(side: &TestSide<'_>) -> Result<(), Failure> {
    while !matches!(side.next().await?, TestEvent::Finish) {}
    Ok(())
}
