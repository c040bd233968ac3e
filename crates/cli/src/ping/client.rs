//! The client of `rdmacm ping`.

use std::time::{Duration, Instant};

use rdmacm::CLOSE_DEADLINE;
use rdmacm::core::{AccessFlags, ConnParam, IdHandle};
use rdmacm::tokio::{CmConnection, Connector};
use rdmacm_verbs::RemoteAccessRegion;

use super::SHAPE;
use super::pattern::pattern;
use super::report::ClientReport;
use crate::args::PingArgs;
use crate::connect_error::connect_error;
use crate::endpoint::Endpoint;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::latencies::time;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::terminal::Progress;
use crate::until_closed::{WorkError, run_until_closed};

pub(super) async fn run(args: &PingArgs, node: &str, interrupt: &Interrupt) -> Outcome {
    let mut report = ClientReport::new(args, node);
    match connect(args, node, interrupt).await {
        Ok(connection) => {
            report.connected(&connection);
            ping_until(connection, args, interrupt, &mut report).await;
        }
        Err(stop) => report.unconnected(&stop),
    }
    report.outcome(args)
}

/// Pings until the end or the first failure, and disconnects.
async fn ping_until(
    connection: CmConnection<Endpoint>,
    args: &PingArgs,
    interrupt: &Interrupt,
    report: &mut ClientReport,
) {
    let mut pinger = match Pinger::new(args, connection.queue_pair()) {
        Ok(pinger) => pinger,
        Err(failure) => {
            report.over(Err(WorkError::Failed(failure)), interrupt);
            let _ = connection.close(CLOSE_DEADLINE).await;
            return;
        }
    };
    let work = ping(args, &mut pinger, interrupt, report);
    let done = run_until_closed(&connection, None, None, Duration::ZERO, work).await;
    let done = done.and_then(|end| match end {
        End::Complete => Ok(()),
        End::Interrupted => Err(WorkError::Interrupted),
    });
    report.over(done, interrupt);
    // The peer may still access the memory of a ping that timed out, so the memory stays
    // registered until the connection is closed.
    let Pinger { start, sink, .. } = pinger;
    // The result does not depend on whether the peer answers.
    let _ = connection.close(CLOSE_DEADLINE).await;
    drop((start, sink));
}

async fn connect(
    args: &PingArgs,
    node: &str,
    interrupt: &Interrupt,
) -> Result<CmConnection<Endpoint>, WorkError> {
    let param = ConnParam::new().responder_resources(1).initiator_depth(1);
    let connector = Connector::new((node, args.port.to_string()));
    let connector = connector.deadline(args.timeout.0).param(param);
    let make = |id: &IdHandle| Endpoint::new(id, SHAPE);
    tokio::select! {
        connected = connector.connect_with(make) => connected.map_err(|error| connect_error(&error)),
        () = interrupt.wait() => Err(WorkError::Interrupted),
    }
}

/// Why there are no more pings, all of which came back.
enum End {
    Complete,
    Interrupted,
}

/// Pings until the end or a signal. A ping that has begun is completed, within its timeout: a server
/// takes a client that disconnects in the middle of one for one that has failed.
async fn ping(
    args: &PingArgs,
    pinger: &mut Pinger<'_>,
    interrupt: &Interrupt,
    report: &mut ClientReport,
) -> Result<End, Failure> {
    let mut progress = Progress::new();
    for (index, number) in numbers(args.count).enumerate() {
        if index > 0 {
            tokio::select! {
                () = tokio::time::sleep_until(pinger.began + args.interval.0) => {}
                () = interrupt.wait() => {}
            }
        }
        if interrupt.is_set() {
            return Ok(End::Interrupted);
        }
        let taken = pinger.ping(number).await?;
        report.came_back(pinger.began.into_std(), taken);
        progress.show(|| format!("ping {number}: {}", time(taken.as_nanos())));
    }
    Ok(End::Complete)
}

/// The numbers of the pings. Without a count they begin again after the last one.
fn numbers(count: Option<u32>) -> impl Iterator<Item = u32> {
    let count = count.map_or(usize::MAX, |count| count as usize);
    (0..=u32::MAX).cycle().take(count)
}

struct Pinger<'a> {
    exchange: Exchange<'a>,
    start: RemoteAccessRegion,
    sink: RemoteAccessRegion,
    timeout: Duration,
    validate: bool,
    /// When the last ping began.
    began: tokio::time::Instant,
}

impl<'a> Pinger<'a> {
    fn new(args: &PingArgs, endpoint: &'a Endpoint) -> Result<Self, Failure> {
        let size = args.size as usize;
        let into = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
        Ok(Self {
            exchange: Exchange::new(endpoint),
            start: endpoint.domain().expose(size, AccessFlags::REMOTE_READ)?,
            sink: endpoint.domain().expose(size, into)?,
            timeout: args.timeout.0,
            validate: args.validate,
            began: tokio::time::Instant::now(),
        })
    }

    /// Pings once and returns the time it took.
    async fn ping(&mut self, number: u32) -> Result<Duration, Failure> {
        let sent = pattern(number, self.start.len());
        self.start.write(0, &sent);
        self.began = tokio::time::Instant::now();
        let began = Instant::now();
        let timeout = self.timeout;
        let round_trip = tokio::time::timeout(timeout, self.round_trip());
        round_trip.await.map_err(|_| {
            let timeout = time(timeout.as_nanos());
            Failure::Peer(format!("ping {number} was not answered within {timeout}"))
        })??;
        let taken = began.elapsed();
        if self.validate {
            self.compare(number, &sent)?;
        }
        Ok(taken)
    }

    async fn round_trip(&mut self) -> Result<(), Failure> {
        for memory in [&self.start, &self.sink] {
            // Every size of a ping fits.
            let message = Message::about(memory.remote()).unwrap_or(Message::GO_AHEAD);
            self.exchange.send(message)?;
            self.exchange.receive_answer().await?;
        }
        Ok(())
    }

    fn compare(&self, number: u32, sent: &[u8]) -> Result<(), Failure> {
        let mut returned = vec![0; sent.len()];
        self.sink.read(0, &mut returned);
        let mut pairs = sent.iter().zip(&returned).enumerate();
        match pairs.find(|(_, (sent, returned))| sent != returned) {
            None => Ok(()),
            Some((index, (sent, returned))) => Err(Failure::Peer(format!(
                "ping {number}: byte {index} was sent as {sent:#04x} and came back as \
                 {returned:#04x}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_without_a_count_have_no_end() {
        assert!(numbers(Some(3)).eq(0..3));
        assert_eq!(numbers(None).size_hint(), (usize::MAX, Some(usize::MAX)));
    }
}
