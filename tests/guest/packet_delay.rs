//! Delays and losses of single packets of a connection.
//!
//! Between its reply to a connect request and the moment it reads the connection's
//! data, siw ignores data that arrives (`siw_accept`) until more does. A client that
//! sends one message and waits for the answer, C or not, waits forever. In tests with
//! such a client, the network delays that message, and nothing else, for longer than
//! siw needs. Where the test itself accepts, the network loses it until it has.

use std::sync::atomic::{AtomicU16, Ordering};

use rdmacm_tests::{Site, Soft};

use crate::link::run;

/// Adds a queue to the guest's own traffic that delays by a second, and one that drops.
///
/// Called before any test: an interface drops pending packets when its queue changes.
pub(crate) fn prepare() -> std::io::Result<()> {
    // The processor that empties a queue processes its packets, so two processors could
    // reorder a connection's end and its data. One processor receives everything.
    std::fs::write("/sys/class/net/lo/queues/rx-0/rps_cpus", "1")?;
    // A lost message is repeated by itself, not with the end that follows it.
    std::fs::write("/proc/sys/net/ipv4/tcp_retrans_collapse", "0")?;
    run("tc qdisc replace dev lo root handle 1: prio bands 5");
    run("tc qdisc replace dev lo parent 1:4 netem delay 1s");
    run("tc qdisc replace dev lo parent 1:5 netem loss 100%");
    Ok(())
}

/// The delayed packets, as a tc filter; after 20 bytes of IP and 32 of TCP with time
/// stamps.
fn hold_back(what: &str) {
    run(&format!(
        "tc filter add dev lo parent 1: pref 1 protocol ip u32 match ip protocol 6 0xff \
         {what} flowid 1:4"
    ));
}

/// Checks that the kernel chooses this port of a listener for no client: a filter that stays as
/// long as the guest would apply to the packets to that client as well.
fn listener_port(port: &str) -> &str {
    // The first of `ip_local_port_range`.
    let is_chosen = port.parse::<u16>().unwrap() >= 32_768;
    assert!(!is_chosen, "{port} is not of `free_port`");
    port
}

/// The first message of queue 0, the queue of sends (RFC 5041, 4.3).
const FIRST_MESSAGE: &str = "match u32 0 0xffffffff at 60 match u32 1 0xffffffff at 64";

/// Delays the first message from each client to this port of the site's addresses.
pub(crate) fn hold_back_first_messages(site: &Site, port: &str) {
    if site.soft == Soft::Siw {
        let port = listener_port(port);
        hold_back(&format!("match ip dport {port} 0xffff {FIRST_MESSAGE}"));
        // After 40 bytes of IP.
        run(&format!(
            "tc filter add dev lo parent 1: pref 2 protocol ipv6 u32 match ip6 protocol 6 0xff \
             match ip6 dport {port} 0xffff \
             match u32 0 0xffffffff at 80 match u32 1 0xffffffff at 84 flowid 1:4"
        ));
    }
}

/// Delays the first message from the server of this port to each client, and everything
/// after it. siw's `CONNECT` fails with ENOMEM if several messages arrive before it
/// returns: each uses one of the four work items of `siw_connect`, which needs one
/// itself. And siw ignores data that arrives while it handles the reply, until more does
/// (`siw_qp_llp_data_ready` does not wait for the lock of `siw_proc_mpareply`).
pub(crate) fn hold_back_first_messages_of_the_server(site: &Site, port: &str) {
    if site.soft == Soft::Siw {
        let port = listener_port(port);
        hold_back(&format!("match ip sport {port} 0xffff {FIRST_MESSAGE}"));
    }
}

/// Delays siw's replies to requests for this port, and not the end of a connection that
/// follows them.
pub(crate) fn hold_back_answers(port: &str) {
    let port = listener_port(port);
    // "MPA ID Rep Frame" (RFC 5044, 7.1).
    hold_back(&format!(
        "match ip sport {port} 0xffff match u32 0x4d504120 0xffffffff at 52 \
         match u32 0x49442052 0xffffffff at 56 match u32 0x65702046 0xffffffff at 60"
    ));
}

/// Packets that the network loses until this is dropped; TCP repeats them.
pub(crate) struct LostPackets {
    /// The preference identifies the filter.
    preference: u16,
}

impl LostPackets {
    /// TCP's SYN packets to a port of the site's IPv4 address.
    pub(crate) fn requests(port: &str) -> Self {
        let port = listener_port(port);
        Self::new(&format!(
            "match ip dport {port} 0xffff match u8 0x02 0x12 at 33"
        ))
    }

    /// The first message from each client of siw to this port.
    pub(crate) fn first_messages(site: &Site, port: &str) -> Option<Self> {
        let port = listener_port(port);
        let what = format!("match ip dport {port} 0xffff {FIRST_MESSAGE}");
        (site.soft == Soft::Siw).then(|| Self::new(&what))
    }

    /// The end of the connection of each client of siw to this port.
    pub(crate) fn ends(site: &Site, port: &str) -> Option<Self> {
        let port = listener_port(port);
        let what = format!("match ip dport {port} 0xffff match u8 0x01 0x01 at 33");
        (site.soft == Soft::Siw).then(|| Self::new(&what))
    }

    fn new(what: &str) -> Self {
        // Above those of the delays. All filters have one: those that the kernel chooses go down
        // from 49152.
        static NEXT: AtomicU16 = AtomicU16::new(3);
        let preference = NEXT.fetch_add(1, Ordering::Relaxed);
        run(&format!(
            "tc filter add dev lo parent 1: pref {preference} protocol ip u32 \
             match ip protocol 6 0xff {what} flowid 1:5"
        ));
        Self { preference }
    }
}

impl Drop for LostPackets {
    fn drop(&mut self) {
        run(&format!(
            "tc filter del dev lo parent 1: pref {}",
            self.preference
        ));
    }
}
