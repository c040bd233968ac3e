//! `rdmacm ping`.

use crate::args::{PingArgs, Role, usage_error};
use crate::endpoint::Shape;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::runtime;

mod client;
mod pattern;
mod report;
mod server;

pub(crate) use pattern::MIN_SIZE;

/// The largest ping, in bytes; a server reads no more.
pub(crate) const MAX_SIZE: u32 = 16 << 20;

/// One message and one request are in flight at a time; the completions of sent messages
/// may arrive late.
const SHAPE: Shape = Shape {
    sends: 16,
    receives: 2,
    receive_size: Message::SIZE,
    inline: 16,
    spin: false,
};

pub(crate) fn run(args: &PingArgs) -> Outcome {
    if let Some(contradiction) = args.contradiction() {
        usage_error(&contradiction);
    }
    let outcome = runtime::run(async |interrupt| match args.role() {
        Role::Client(node) => client::run(args, node, &interrupt).await,
        Role::Server(address) => server::run(args, address, &interrupt).await,
    });
    outcome.unwrap_or_else(Outcome::of_error)
}
