//! Delays for single packets of a connection.
//!
//! Between its answer to a connect request and the moment it listens to the
//! connection's data, siw takes no notice of what arrives (`siw_accept`), until more
//! does. A client that sends one message and waits for the answer waits for ever, C or
//! not. Where a test has such a client the network holds that message back for longer
//! than siw needs, and nothing else.

use rdmacm_tests::{Site, Soft};

use crate::link::run;

/// Gives the guest's own traffic a band that is a second late, and one that loses all.
///
/// Before any test: an interface loses what is on its way when its queue changes.
pub(crate) fn prepare() -> std::io::Result<()> {
    // A queue is emptied by whichever processor is at it, so what a connection sends
    // would reach two of them, and its end could overtake its data. One hears it all.
    std::fs::write("/sys/class/net/lo/queues/rx-0/rps_cpus", "1")?;
    run("tc qdisc replace dev lo root handle 1: prio bands 5");
    run("tc qdisc replace dev lo parent 1:4 netem delay 1s");
    run("tc qdisc replace dev lo parent 1:5 netem loss 100%");
    Ok(())
}

/// What is late from now on, in tc's words; behind 20 bytes of IP and 32 of TCP, with
/// its time stamps.
fn hold_back(what: &str) {
    run(&format!(
        "tc filter add dev lo parent 1: protocol ip u32 match ip protocol 6 0xff \
         {what} flowid 1:4"
    ));
}

/// The first message of queue 0, which is that of sends (RFC 5041, 4.3).
const FIRST_MESSAGE: &str = "match u32 0 0xffffffff at 60 match u32 1 0xffffffff at 64";

/// Holds back the first message that each client sends to this port of the site's IPv4
/// address.
pub(crate) fn hold_back_first_messages(site: &Site, port: &str) {
    if site.soft == Soft::Siw {
        hold_back(&format!("match ip dport {port} 0xffff {FIRST_MESSAGE}"));
    }
}

/// Holds back the first message that the server of this port sends to each client, and with
/// it all that follows. `CONNECT` of siw fails with ENOMEM where several messages come
/// before it returns: each takes one of the four places that `siw_connect` has for what is
/// to be done, and needs one itself.
pub(crate) fn hold_back_first_messages_of_the_server(site: &Site, port: &str) {
    if site.soft == Soft::Siw {
        hold_back(&format!("match ip sport {port} 0xffff {FIRST_MESSAGE}"));
    }
}

/// Holds back the end that each client gives its connection to this port, so that it
/// stays behind a first message that is held back.
pub(crate) fn hold_back_ends(site: &Site, port: &str) {
    if site.soft == Soft::Siw {
        hold_back(&format!(
            "match ip dport {port} 0xffff match u8 0x01 0x01 at 33"
        ));
    }
}

/// Holds back siw's answers to requests for this port, and not the end of a connection
/// that follows them.
pub(crate) fn hold_back_answers(port: u16) {
    // "MPA ID Rep Frame" (RFC 5044, 7.1).
    hold_back(&format!(
        "match ip sport {port} 0xffff match u32 0x4d504120 0xffffffff at 52 \
         match u32 0x49442052 0xffffffff at 56 match u32 0x65702046 0xffffffff at 60"
    ));
}

/// Loses TCP's requests to a port of the site's IPv4 address, until dropped.
pub(crate) struct LostRequests {
    port: u16,
}

impl LostRequests {
    pub(crate) fn new(port: u16) -> Self {
        // The preference is what the filter is known by.
        run(&format!(
            "tc filter add dev lo parent 1: pref {port} protocol ip u32 \
             match ip protocol 6 0xff match ip dport {port} 0xffff \
             match u8 0x02 0x12 at 33 flowid 1:5"
        ));
        Self { port }
    }
}

impl Drop for LostRequests {
    fn drop(&mut self) {
        run(&format!(
            "tc filter del dev lo parent 1: pref {}",
            self.port
        ));
    }
}
