//! Replies to peers that resolve the socket (SIDR).

use rdmacm_core::{Event, UdParam};

use super::config::{DatagramConfig, Filter};

/// How requests are replied to.
#[derive(Debug)]
pub(super) struct SidrReplies {
    reply: UdParam,
    filter: Filter,
}

impl SidrReplies {
    pub(super) fn new(config: &DatagramConfig) -> Self {
        Self {
            reply: config.reply.clone(),
            filter: config.filter.clone(),
        }
    }

    /// Replies with this queue pair, or rejects the peer. A peer whose reply is lost repeats
    /// its request.
    pub(super) fn reply(&self, request: Event, qp_number: u32, qkey: u32) {
        if !self.filter.accepts(request.private_data()) {
            // Dropping the request rejects it.
            return;
        }
        if let Some(child) = request.into_child() {
            let reply = self.reply.clone().qp_number(qp_number).qkey(qkey);
            let _ = child.accept(reply);
        }
    }
}
