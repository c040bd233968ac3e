//! `rdmacm perf`.

use crate::args::{PerfArgs, Role, usage_error};
use crate::outcome::Outcome;
use crate::runtime;

mod bandwidth;
mod client;
mod latency;
mod parameters;
mod report;
mod server;
mod side;
mod streams;
mod test_end;

pub(crate) use parameters::{MAX_AT_ONCE, MAX_DEPTH, MAX_SIZE, Parameters, Test};

pub(crate) fn run(args: &PerfArgs) -> Outcome {
    if let Some(contradiction) = args.contradiction() {
        usage_error(&contradiction);
    }
    let outcome = runtime::run(async |interrupt| match args.role() {
        Role::Client(node) if args.parameters().test.is_of_stream() => {
            streams::run(args, node, &interrupt).await
        }
        Role::Client(node) => client::run(args, node, &interrupt).await,
        Role::Server(address) => server::run(args, address, &interrupt).await,
    });
    outcome.unwrap_or_else(Outcome::of_error)
}
