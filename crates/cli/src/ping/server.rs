//! The server of `rdmacm ping`.

use std::net::SocketAddr;
use std::time::Duration;

use rdmacm::CLOSE_DEADLINE;
use rdmacm::core::IdHandle;
use rdmacm::tokio::{CmConnection, Incoming};
use rdmacm_verbs::{Buffer, RemoteMemory, SendOperation, SendRequest, SgList};

use super::pattern::length;
use super::{MAX_SIZE, SHAPE};
use crate::args::PingArgs;
use crate::endpoint::Endpoint;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::serve::{peer_of, serve};
use crate::server_report::{PeerOutcome, PeerResult, ServerReport};
use crate::until_closed::{WorkError, run_until_closed};

pub(super) async fn run(args: &PingArgs, address: SocketAddr, interrupt: &Interrupt) -> Outcome {
    let mut report = ServerReport::of_pings(args.json);
    let count = args.count;
    let peer = |incoming| serve_peer(incoming, count, interrupt.clone());
    let over = async |served| report.add(served).await;
    let listened = serve(address, args.server, interrupt, peer, over).await;
    report.outcome(listened, interrupt.is_set(), args.server.persistent)
}

/// Serves one peer, from its request to its disconnect.
async fn serve_peer(incoming: Incoming, count: Option<u32>, interrupt: Interrupt) -> PeerResult {
    let peer = peer_of(&incoming);
    let make = |id: &IdHandle| Endpoint::new(id, SHAPE);
    let mut pings = 0;
    let failure = tokio::select! {
        accepted = incoming.accept_with(make) => match accepted {
            Ok(connection) => serve_pings(connection, count, &interrupt, &mut pings).await,
            Err(error) => Some(error.to_string()),
        },
        () = interrupt.wait() => shortcoming(&WorkError::Interrupted, count, false),
    };
    PeerResult {
        peer,
        done: format!("{pings} pings"),
        pings: Some(pings),
        verdict: failure.map_or(PeerOutcome::Completed, PeerOutcome::Failed),
    }
}

/// Serves pings; the failure, if any.
async fn serve_pings(
    connection: CmConnection<Endpoint>,
    count: Option<u32>,
    interrupt: &Interrupt,
    pings: &mut u64,
) -> Option<String> {
    let mut pinged = Pinged::new(connection.queue_pair());
    let work = pinged.serve(count);
    // A client may pause between two pings for as long as it likes.
    let stop = run_until_closed(&connection, Some(interrupt), None, Duration::ZERO, work).await;
    let midway = pinged.midway;
    *pings = pinged.pings;
    if stop.is_ok() {
        // The last message may still be on its way, and the client disconnects.
        let _ = connection.closed(CLOSE_DEADLINE).await;
    }
    // The result does not depend on whether the peer answers.
    let _ = connection.close(CLOSE_DEADLINE).await;
    shortcoming(&stop.err()?, count, midway)
}

/// The failure that this end amounts to; `None` for an orderly end.
fn shortcoming(stop: &WorkError, count: Option<u32>, midway: bool) -> Option<String> {
    match (stop, count) {
        (stop, Some(count)) => Some(format!("{stop} before {count} pings were made")),
        (WorkError::Interrupted, None) => None,
        (WorkError::Ended(ending), None) if ending.failure().is_none() && !midway => None,
        (WorkError::Ended(_), None) => Some(format!("{stop} in the middle of a ping")),
        (stop, None) => Some(stop.to_string()),
    }
}

struct Pinged<'a> {
    exchange: Exchange<'a>,
    buffer: Option<Buffer>,
    pings: u64,
    midway: bool,
}

impl<'a> Pinged<'a> {
    fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            exchange: Exchange::new(endpoint),
            buffer: None,
            pings: 0,
            midway: false,
        }
    }

    async fn serve(&mut self, count: Option<u32>) -> Result<(), Failure> {
        while count.is_none_or(|count| self.pings < u64::from(count)) {
            let start = self.memory().await?;
            self.midway = true;
            let bytes = self.read(start).await?;
            self.exchange.send(Message::GO_AHEAD)?;
            let sink = self.memory().await?;
            self.write(bytes, start, sink).await?;
            self.exchange.send(Message::GO_AHEAD)?;
            self.midway = false;
            self.pings += 1;
        }
        Ok(())
    }

    /// Receives the location of the peer's memory.
    async fn memory(&mut self) -> Result<RemoteMemory, Failure> {
        let memory = self.exchange.receive().await?.memory();
        memory.ok_or_else(|| {
            Failure::Peer("the peer's memory goes beyond the last address".to_owned())
        })
    }

    async fn read(&mut self, start: RemoteMemory) -> Result<Buffer, Failure> {
        let size = size(start)?;
        let sge = self.buffer(size)?.slice(0..size)?;
        let request = SendRequest::new(SendOperation::Read(start), sge);
        owned(self.exchange.complete(request).await?)
    }

    /// Writes back the bytes that were read.
    async fn write(
        &mut self,
        buffer: Buffer,
        start: RemoteMemory,
        sink: RemoteMemory,
    ) -> Result<(), Failure> {
        let text = length(buffer.get(..size(start)?).unwrap_or_default());
        let sink = sink.slice(..text as u64).ok_or_else(|| {
            let length = sink.len();
            Failure::Peer(format!(
                "the peer has {length} bytes of memory for the {text} bytes it sent"
            ))
        })?;
        let request = SendRequest::new(SendOperation::Write(sink), buffer.slice(0..text)?);
        self.buffer = Some(owned(self.exchange.complete(request).await?)?);
        Ok(())
    }

    /// A buffer of at least `size` bytes.
    fn buffer(&mut self, size: usize) -> Result<Buffer, Failure> {
        // A smaller one is freed first.
        match self.buffer.take().filter(|buffer| buffer.len() >= size) {
            Some(buffer) => Ok(buffer),
            None => Ok(self.exchange.endpoint().domain().allocate(size)?),
        }
    }
}

fn size(start: RemoteMemory) -> Result<usize, Failure> {
    let size = u32::try_from(start.len()).unwrap_or(u32::MAX);
    if (1..=MAX_SIZE).contains(&size) {
        Ok(size as usize)
    } else {
        Err(Failure::Peer(format!(
            "the peer's pings have {size} bytes, and 1 to {MAX_SIZE} are served"
        )))
    }
}

fn owned(sg_list: SgList) -> Result<Buffer, Failure> {
    let buffer = sg_list.into_buffer();
    // What was posted is one.
    buffer.ok_or_else(|| Failure::Peer("a request came back without its memory".to_owned()))
}
