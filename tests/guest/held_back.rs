//! Clients that send at once.
//!
//! Between its answer to a connect request and the moment it listens to the
//! connection's data, siw takes no notice of what arrives (`siw_accept`), until more
//! does. A client that sends one message and waits for the answer waits for ever, C or
//! not. Where a test has such a client the network holds that message back for longer
//! than siw needs, and nothing else.

use std::sync::Once;

use rdmacm_tests::{Site, Soft};

use crate::link::run;

/// Holds back the first message that each client sends to this port of the site's IPv4
/// address.
pub(crate) fn hold_back_first_messages(site: &Site, port: &str) {
    static QUEUE: Once = Once::new();
    if site.soft == Soft::Rxe {
        return;
    }
    QUEUE.call_once(|| {
        run("tc qdisc replace dev lo root handle 1: prio bands 4");
        run("tc qdisc replace dev lo parent 1:4 netem delay 1s");
    });
    // Behind 20 bytes of IP and 32 of TCP, with its time stamps, the first message of
    // queue 0, which is that of sends (RFC 5041, 4.3).
    run(&format!(
        "tc filter add dev lo parent 1: protocol ip u32 match ip protocol 6 0xff \
         match ip dport {port} 0xffff match u32 0 0xffffffff at 60 \
         match u32 1 0xffffffff at 64 flowid 1:4"
    ));
}
