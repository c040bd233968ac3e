//! The side that is pinged.

use std::net::SocketAddr;
use std::time::Duration;

use rdmacm::CLOSE_DEADLINE;
use rdmacm::core::IdHandle;
use rdmacm::tokio::{CmConnection, Incoming};
use rdmacm_verbs::{Buffer, RemoteMemory, SendOperation, SendRequest, SgList};

use super::pattern::length;
use super::{MAX_SIZE, SHAPE};
use crate::args::PingArgs;
use crate::attend::{Stop, attend};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::serve::{peer_of, serve};
use crate::served::{Served, ServerReport, Verdict};
use crate::talk::Talk;

pub(super) async fn run(args: &PingArgs, address: SocketAddr, interrupt: &Interrupt) -> Outcome {
    let mut report = ServerReport::of_pings(args.json);
    let count = args.count;
    let peer = |incoming| be_pinged(incoming, count, interrupt.clone());
    let over = |served| report.add(served);
    let listened = serve(address, args.server, interrupt, peer, over).await;
    report.outcome(listened, interrupt.has_come(), args.server.persistent)
}

/// One peer, from its request to its end.
async fn be_pinged(incoming: Incoming, count: Option<u32>, interrupt: Interrupt) -> Served {
    let peer = peer_of(&incoming);
    let make = |id: &IdHandle| Endpoint::new(id, SHAPE);
    let mut pings = 0;
    let failure = tokio::select! {
        accepted = incoming.accept_with(make) => match accepted {
            Ok(connection) => serve_pings(connection, count, &interrupt, &mut pings).await,
            Err(error) => Some(error.to_string()),
        },
        () = interrupt.wait() => shortcoming(&Stop::Interrupted, count, false),
    };
    Served {
        peer,
        done: format!("{pings} pings"),
        pings: Some(pings),
        verdict: failure.map_or(Verdict::Completed, Verdict::Failed),
    }
}

/// Why not all was as it should be.
async fn serve_pings(
    connection: CmConnection<Endpoint>,
    count: Option<u32>,
    interrupt: &Interrupt,
    pings: &mut u64,
) -> Option<String> {
    let mut pinged = Pinged::new(connection.queue_pair());
    let stop = attend(&connection, interrupt, Duration::ZERO, pinged.serve(count)).await;
    let midway = pinged.midway;
    *pings = pinged.pings;
    if stop.is_ok() {
        // The last word may still be on its way, and parting is the client's.
        let _ = connection.closed(CLOSE_DEADLINE).await;
    }
    // The result is known, whether the peer answers or not.
    let _ = connection.close(CLOSE_DEADLINE).await;
    shortcoming(&stop.err()?, count, midway)
}

/// What is wrong with an end like this.
fn shortcoming(stop: &Stop, count: Option<u32>, midway: bool) -> Option<String> {
    match (stop, count) {
        (stop, Some(count)) => Some(format!("{stop} before {count} pings were made")),
        (Stop::Interrupted, None) => None,
        (Stop::Ended(ending), None) if ending.failure().is_none() && !midway => None,
        (Stop::Ended(_), None) => Some(format!("{stop} in the middle of a ping")),
        (stop, None) => Some(stop.to_string()),
    }
}

struct Pinged<'a> {
    talk: Talk<'a>,
    buffer: Option<Buffer>,
    pings: u64,
    midway: bool,
}

impl<'a> Pinged<'a> {
    fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            talk: Talk::new(endpoint),
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
            self.talk.say(Message::GO_AHEAD)?;
            let sink = self.memory().await?;
            self.write(bytes, start, sink).await?;
            self.talk.say(Message::GO_AHEAD)?;
            self.midway = false;
            self.pings += 1;
        }
        Ok(())
    }

    /// The memory of which the peer tells next.
    async fn memory(&mut self) -> Result<RemoteMemory, Failure> {
        let memory = self.talk.hear().await?.memory();
        memory.ok_or_else(|| {
            Failure::Peer("the peer's memory goes beyond the last address".to_owned())
        })
    }

    async fn read(&mut self, start: RemoteMemory) -> Result<Buffer, Failure> {
        let size = size(start)?;
        let sge = self.room(size)?.part(0..size)?;
        let request = SendRequest::new(SendOperation::Read(start), sge);
        owned(self.talk.carry_out(request).await?)
    }

    /// Writes back the text that was read.
    async fn write(
        &mut self,
        buffer: Buffer,
        start: RemoteMemory,
        sink: RemoteMemory,
    ) -> Result<(), Failure> {
        let text = length(buffer.get(..size(start)?).unwrap_or_default());
        let sink = sink.part(..text as u64).ok_or_else(|| {
            let room = sink.len();
            Failure::Peer(format!(
                "the peer has room for {room} of the {text} bytes it sent"
            ))
        })?;
        let request = SendRequest::new(SendOperation::Write(sink), buffer.part(0..text)?);
        self.buffer = Some(owned(self.talk.carry_out(request).await?)?);
        Ok(())
    }

    /// A buffer for so many bytes.
    fn room(&mut self, size: usize) -> Result<Buffer, Failure> {
        match self.buffer.take() {
            Some(buffer) if buffer.len() >= size => Ok(buffer),
            _ => Ok(self.talk.endpoint().domain().allocate(size)?),
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
