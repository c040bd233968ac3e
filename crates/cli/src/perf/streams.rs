//! Tests of byte streams.
//!
//! The client sends the parameters, and the server its answer to them. Then the client sends
//! messages. The server sends each one back to measure latency; to measure bandwidth, it answers
//! with one byte those that ask for it. The client's end of the stream ends the test; a client that
//! has failed disconnects without it.

use std::io;

use rdmacm::CLOSE_DEADLINE;
use rdmacm::tokio::{Connector, Incoming, RdmaStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use super::parameters::{AGREED_SIZE, agreed, check_version};
use super::report::ClientReport;
use super::test_end::TestEnd;
use super::{Parameters, Test};
use crate::args::PerfArgs;
use crate::connect_error::connect_error;
use crate::connection_path::ConnectionPath;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keep_alive::{SILENCE_LIMIT, stream_options};
use crate::latencies::time;
use crate::outcome::Outcome;
use crate::serve::peer_of;
use crate::server_report::{PeerOutcome, PeerResult};
use crate::terminal::{self, Progress};
use crate::until_closed::WorkError;

/// The first byte of a message that asks for an answer.
const ANSWER: u8 = 1;

/// The client.
pub(super) async fn run(args: &PerfArgs, node: &str, interrupt: &Interrupt) -> Outcome {
    let mut report = ClientReport::new(args, node);
    match connect(args, node, interrupt).await {
        Ok(stream) => {
            report.connected(ConnectionPath::of_stream(&stream));
            let mut side = ClientSide::new(stream, args.parameters());
            let measured = tokio::select! {
                measured = measure(args, &mut side, &mut report) => measured.map_err(WorkError::Failed),
                () = interrupt.wait() => Err(WorkError::Interrupted),
            };
            let is_measured = measured.is_ok();
            report.over(measured);
            if is_measured {
                // The result does not depend on whether the peer answers.
                let _ = side.stream.close(CLOSE_DEADLINE).await;
            } else {
                // The end of the stream would tell the server that all was measured.
                side.stream.abort();
            }
        }
        Err(stop) => report.unconnected(&stop),
    }
    report.outcome(args)
}

async fn connect(
    args: &PerfArgs,
    node: &str,
    interrupt: &Interrupt,
) -> Result<RdmaStream, WorkError> {
    let connector = Connector::new((node, args.port.to_string())).deadline(args.timeout.0);
    tokio::select! {
        connected = connector.connect_stream(stream_options()) =>
            connected.map_err(|error| connect_error(&error)),
        () = interrupt.wait() => Err(WorkError::Interrupted),
    }
}

async fn measure(
    args: &PerfArgs,
    side: &mut ClientSide,
    report: &mut ClientReport,
) -> Result<(), Failure> {
    let limit = args.timeout.0;
    let agreed = timeout(limit, side.agree()).await;
    agreed.map_err(|_| {
        let limit = time(limit.as_nanos());
        Failure::Peer(format!("the server did not answer within {limit}"))
    })??;
    let mut progress = Progress::new();
    let mut show = |messages: u64| progress.show(|| format!("{messages} messages"));
    let warm_up = TestEnd::of_warm_up(args.goal());
    if side.parameters.test.is_latency() {
        while warm_up.is_ahead_of(side.rounds) {
            side.round().await?;
        }
        report.begin();
        side.rounds = 0;
        let end = TestEnd::of_goal(args.goal());
        while end.is_ahead_of(side.rounds) {
            let began = Instant::now();
            side.round().await?;
            show(report.took(began.elapsed()));
        }
    } else {
        side.send_until(warm_up, || {}).await?;
        report.begin();
        let end = TestEnd::of_goal(args.goal());
        side.send_until(end, || show(report.done())).await?;
    }
    report.end();
    Ok(())
}

/// The client's stream, and the message that it sends.
struct ClientSide {
    stream: RdmaStream,
    parameters: Parameters,
    message: Vec<u8>,
    /// Round trips so far.
    rounds: u64,
}

impl ClientSide {
    fn new(stream: RdmaStream, parameters: Parameters) -> Self {
        Self {
            stream,
            parameters,
            message: vec![0; parameters.size as usize],
            rounds: 0,
        }
    }

    /// Sends the parameters.
    async fn agree(&mut self) -> Result<(), Failure> {
        self.stream.write_all(&self.parameters.to_bytes()).await?;
        let mut answer = [0; AGREED_SIZE];
        self.stream.read_exact(&mut answer).await?;
        check_version(&answer).map_err(Failure::Peer)
    }

    /// Sends the message, and receives it.
    async fn round(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.message).await?;
        self.stream.read_exact(&mut self.message).await?;
        self.rounds += 1;
        Ok(())
    }

    fn set_first_byte(&mut self, byte: u8) {
        self.message
            .iter_mut()
            .take(1)
            .for_each(|first| *first = byte);
    }

    /// Sends messages, one at least, and waits for the peer's answer to the last one: then all have
    /// arrived. Calls `done` for each.
    async fn send_until(&mut self, end: TestEnd, mut done: impl FnMut()) -> io::Result<()> {
        let (mut sent, mut is_last) = (0, false);
        while !is_last {
            sent += 1;
            is_last = !end.is_ahead_of(sent);
            self.set_first_byte(if is_last { ANSWER } else { 0 });
            self.stream.write_all(&self.message).await?;
            done();
        }
        self.stream.read_exact(&mut [0]).await?;
        Ok(())
    }
}

/// The server's part, for a peer that requests a stream.
pub(super) async fn take_part(incoming: Incoming, interrupt: &Interrupt) -> PeerResult {
    let peer = peer_of(&incoming);
    let mut done = String::new();
    let served = tokio::select! {
        served = serve(incoming, &peer, &mut done) => served,
        () = interrupt.wait() => Ok(()),
    };
    PeerResult {
        peer,
        done,
        pings: None,
        verdict: PeerOutcome::from(served),
    }
}

async fn serve(incoming: Incoming, peer: &str, done: &mut String) -> Result<(), String> {
    let stream = incoming.accept_stream(stream_options()).await;
    let mut stream = stream.map_err(|error| error.to_string())?;
    let received = timeout(SILENCE_LIMIT, receive_parameters(&mut stream)).await;
    let parameters = received.map_err(|_| Failure::Silent(SILENCE_LIMIT).to_string())??;
    *done = parameters.to_string();
    terminal::print_notice(&format!("{peer}: measures {parameters}"));
    let answered = answer(&mut stream, parameters).await;
    answered.map_err(|error| format!("{error} before it had finished"))?;
    // The result does not depend on whether the peer answers.
    let _ = stream.close(CLOSE_DEADLINE).await;
    Ok(())
}

async fn receive_parameters(stream: &mut RdmaStream) -> Result<Parameters, String> {
    let mut bytes = [0; Parameters::SIZE];
    let text = |error: io::Error| error.to_string();
    stream.read_exact(&mut bytes).await.map_err(text)?;
    let parameters = Parameters::from_stream(&bytes)?;
    stream.write_all(&agreed()).await.map_err(text)?;
    Ok(parameters)
}

/// Answers messages until the client ends the stream.
async fn answer(stream: &mut RdmaStream, parameters: Parameters) -> io::Result<()> {
    let mut message = vec![0; parameters.size as usize];
    loop {
        let first = stream.read(&mut message).await?;
        let Some(rest) = message.get_mut(first..).filter(|_| first > 0) else {
            return Ok(());
        };
        stream.read_exact(rest).await?;
        if parameters.test == Test::StreamLat {
            stream.write_all(&message).await?;
        } else if message.first() == Some(&ANSWER) {
            stream.write_all(&[0]).await?;
        }
    }
}
