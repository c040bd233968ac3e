//! `rdmacm resolve`.

use rdmacm::addrinfo::{self, AddrInfo};

use crate::args::{ResolveArgs, usage_error};
use crate::outcome::Outcome;

mod document;
mod listing;

use document::Document;

pub(crate) fn run(args: &ResolveArgs) -> Outcome {
    if let Some(contradiction) = args.contradiction() {
        usage_error(&contradiction);
    }
    let answer = addrinfo::resolve(args.node.as_str(), args.service.as_deref(), &args.hints());
    let reachable = answer
        .as_ref()
        .is_ok_and(|candidates| candidates.iter().any(AddrInfo::is_reachable));
    let (output, complaint) = match (&answer, args.json) {
        (answer, true) => (Document::new(args, answer).render(), None),
        (Ok(candidates), false) => (listing::render(&args.node, candidates), None),
        (Err(error), false) => (String::new(), Some(error.to_string())),
    };
    Outcome {
        output,
        complaint,
        success: reachable,
    }
}
