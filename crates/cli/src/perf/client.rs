//! The side that measures.

use std::time::Duration;

use rdmacm::CLOSE_DEADLINE;
use rdmacm::core::{ConnParam, IdHandle};
use rdmacm::tokio::{CmConnection, Connector};

use super::bandwidth::Stream;
use super::latency::Rounds;
use super::load::{Load, shape};
use super::report::ClientReport;
use super::terms::check_version;
use super::until::Until;
use crate::args::PerfArgs;
use crate::attend::{Stop, attend};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::latencies::time;
use crate::outcome::Outcome;
use crate::refusal::unconnected;
use crate::terminal::Progress;

pub(super) async fn run(args: &PerfArgs, node: &str, interrupt: &Interrupt) -> Outcome {
    let mut report = ClientReport::new(args, node);
    match connect(args, node, interrupt).await {
        Ok(connection) => {
            report.connected(&connection);
            let work = measure(args, connection.queue_pair(), &mut report);
            let done = attend(&connection, interrupt, Duration::ZERO, work).await;
            report.over(done);
            // The result is known, whether the peer answers or not.
            let _ = connection.close(CLOSE_DEADLINE).await;
        }
        Err(stop) => report.unconnected(&stop),
    }
    report.outcome(args)
}

async fn connect(
    args: &PerfArgs,
    node: &str,
    interrupt: &Interrupt,
) -> Result<CmConnection<Endpoint>, Stop> {
    let terms = args.terms();
    let param = ConnParam::new().private_data(&terms.to_bytes());
    let param = param.map_err(|error| Stop::Unconnected(error.to_string()))?;
    let connector = Connector::new((node, args.port.to_string()));
    let connector = connector.deadline(args.timeout.0).param(param);
    let make = |id: &IdHandle| Endpoint::new(id, shape(&terms, false));
    let connection = tokio::select! {
        connected = connector.connect_with(make) => connected.map_err(|error| unconnected(&error))?,
        () = interrupt.wait() => return Err(Stop::Interrupted),
    };
    check_version(connection.private_data()).map_err(Stop::Unconnected)?;
    Ok(connection)
}

async fn measure(
    args: &PerfArgs,
    endpoint: &Endpoint,
    report: &mut ClientReport,
) -> Result<(), Failure> {
    let timeout = args.timeout.0;
    let exchange = Load::exchange(endpoint, args.terms(), false);
    let load = tokio::time::timeout(timeout, exchange).await;
    let load = load.map_err(|_| {
        let timeout = time(timeout.as_nanos());
        Failure::Peer(format!("the server did not answer within {timeout}"))
    })??;
    let (warm, goal) = (Until::warm, args.goal());
    let mut progress = Progress::new();
    let mut show = |messages: u64| progress.show(|| format!("{messages} messages"));
    if load.terms.test.is_latency() {
        let mut rounds = Rounds::new(&load);
        rounds.run(warm(goal), |_| {}).await?;
        report.begin();
        let taken = |taken| show(report.took(taken));
        rounds.run(Until::reached(goal), taken).await?;
    } else {
        let mut stream = Stream::new(&load);
        stream.run(warm(goal), || {}).await?;
        report.begin();
        let done = || show(report.done());
        stream.run(Until::reached(goal), done).await?;
    }
    report.end();
    load.finish().await
}
