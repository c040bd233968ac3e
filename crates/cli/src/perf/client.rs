//! The client of `rdmacm perf`.

use std::time::Duration;

use rdmacm::CLOSE_DEADLINE;
use rdmacm::core::{ConnParam, IdHandle};
use rdmacm::tokio::{CmConnection, Connector};

use super::bandwidth::Stream;
use super::latency::Rounds;
use super::parameters::check_version;
use super::report::ClientReport;
use super::side::{TestSide, shape};
use super::test_end::TestEnd;
use crate::args::PerfArgs;
use crate::connect_error::connect_error;
use crate::connection_path::ConnectionPath;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keep_alive::SILENCE_LIMIT;
use crate::latencies::time;
use crate::outcome::Outcome;
use crate::terminal::Progress;
use crate::until_closed::{WorkError, run_until_closed};

pub(super) async fn run(args: &PerfArgs, node: &str, interrupt: &Interrupt) -> Outcome {
    let mut report = ClientReport::new(args, node);
    match connect(args, node, interrupt).await {
        Ok(connection) => {
            report.connected(ConnectionPath::of_connection(&connection));
            let work = measure(args, connection.queue_pair(), &mut report);
            // The server may take that long for its first answer.
            let silence = Some(SILENCE_LIMIT.max(args.timeout.0));
            let done =
                run_until_closed(&connection, Some(interrupt), silence, Duration::ZERO, work).await;
            report.over(done);
            // The result does not depend on whether the peer answers.
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
) -> Result<CmConnection<Endpoint>, WorkError> {
    let parameters = args.parameters();
    let param = ConnParam::new().private_data(&parameters.to_bytes());
    let param = param.map_err(|error| WorkError::Unconnected(error.to_string()))?;
    let connector = Connector::new((node, args.port.to_string()));
    let connector = connector.deadline(args.timeout.0).param(param);
    let make = |id: &IdHandle| Endpoint::new(id, shape(&parameters, false));
    let connection = tokio::select! {
        connected = connector.connect_with(make) => connected.map_err(|error| connect_error(&error))?,
        () = interrupt.wait() => return Err(WorkError::Interrupted),
    };
    check_version(connection.private_data()).map_err(WorkError::Unconnected)?;
    Ok(connection)
}

async fn measure(
    args: &PerfArgs,
    endpoint: &Endpoint,
    report: &mut ClientReport,
) -> Result<(), Failure> {
    let timeout = args.timeout.0;
    let exchange = TestSide::exchange(endpoint, args.parameters(), false);
    let side = tokio::time::timeout(timeout, exchange).await;
    let side = side.map_err(|_| {
        let timeout = time(timeout.as_nanos());
        Failure::Peer(format!("the server did not answer within {timeout}"))
    })??;
    let (warm, goal) = (TestEnd::of_warm_up, args.goal());
    let mut progress = Progress::new();
    let mut show = |messages: u64| progress.show(|| format!("{messages} messages"));
    if side.parameters.test.is_latency() {
        let mut rounds = Rounds::new(&side);
        rounds.run(warm(goal), |_| {}).await?;
        report.begin();
        let taken = |taken| show(report.took(taken));
        rounds.run(TestEnd::of_goal(goal), taken).await?;
    } else {
        let mut stream = Stream::new(&side);
        stream.run(warm(goal), || {}).await?;
        report.begin();
        let done = || show(report.done());
        stream.run(TestEnd::of_goal(goal), done).await?;
    }
    report.end();
    side.finish().await
}
