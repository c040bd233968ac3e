//! Peers that say that the kernel should send to a host that is not there.

use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use rdmacm::Stage;
use rdmacm::core::{CmAddr, ConnParam, Gid, PathData};
use rdmacm::tokio::{Listener, RdmaListener};
use rdmacm_tests::{PATIENCE, Site, free_qp_number};
use rdmacm_tests_macros::case;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::connector::asynchronous::on_one_thread;

/// Asks to connect, as a host that is not there, with this private data.
fn ask(site: &Site, address: CmAddr, host: Ipv6Addr, private_data: &[u8]) -> impl Sized + use<> {
    let channel = site.channel();
    let mut path = site.routed(&channel, address).path_records().unwrap()[0];
    path.flags = PathData::USABLE;
    path.record.sgid = Gid::from(host);
    let id = site.resolved(&channel, address);
    id.set_ib_path(&[path]).unwrap();
    let param = ConnParam::new().qp_number(free_qp_number());
    id.connect(param.private_data(private_data).unwrap())
        .unwrap();
    (channel, id)
}

/// Counts how often the runtime's only thread was free, without end.
async fn watch(count: &mut u32) {
    let mut ticks = interval(Duration::from_millis(5));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        *count += 1;
    }
}

/// The kernel asks for the host for a second when the queue pair moves to RTR, and the thread that
/// has moved it sleeps meanwhile.
#[case(alone, needs(CmResponse))]
fn a_request_of_an_absent_host_blocks_no_thread(site: &Site) {
    let host = site.v6.to_bits() + 0x77;
    for (address, host) in [
        (site.v4(0), site.silent.to_ipv6_mapped()),
        (site.v6(0), Ipv6Addr::from_bits(host)),
        (site.v6(0), "fe80::77".parse().unwrap()),
    ] {
        asks_in_vain(site, address, host);
    }
}

fn asks_in_vain(site: &Site, address: CmAddr, host: Ipv6Addr) {
    const SLEEP: Duration = Duration::from_millis(900);
    on_one_thread().block_on(async {
        let listener = Listener::bind(address).unwrap();
        let port = listener.local_addr().port();
        let _asking = ask(site, address.with_port(port), host, b"");
        let incoming = listener.accept(PATIENCE).await.unwrap();
        let mut count = 0;
        let accepted = tokio::select! {
            accepted = incoming.accept() => accepted,
            () = watch(&mut count) => unreachable!("it never ends"),
        };
        let error = accepted.unwrap_err();
        assert_eq!(error.stage(), Stage::Accept);
        assert!(error.is_unreachable(), "{error}");
        assert!(error.elapsed() >= SLEEP, "{error}");
        // Twice or so if the thread slept.
        assert!(count >= 4, "{count}");
    });
}

/// And streams that come meanwhile are accepted.
#[case(alone, needs(CmResponse))]
fn a_stream_of_an_absent_host_is_given_up(site: &Site) {
    /// As many seconds, if one waited for the other.
    const HOSTS: usize = 30;
    let mut handshake = [0; 40];
    (handshake[0], handshake[23]) = (1, 2);
    on_one_thread().block_on(async {
        let listener = RdmaListener::bind(site.v4(0)).unwrap();
        let address = listener.local_addr().unwrap();
        let host = site.silent.to_ipv6_mapped();
        let _asking: Vec<_> =
            std::iter::repeat_with(|| ask(site, address.into(), host, &handshake))
                .take(HOSTS)
                .collect();
        let connect = tokio::spawn(rdmacm::tokio::RdmaStream::connect(address));
        let accepting = async {
            let (stream, peer) = listener.accept().await.unwrap();
            assert_eq!(peer.ip(), site.v4);
            stream
        };
        let start = Instant::now();
        let accepted = timeout(PATIENCE, accepting).await.unwrap();
        assert!(
            start.elapsed() < Duration::from_secs(15),
            "{:?}",
            start.elapsed()
        );
        drop((accepted, connect.await.unwrap().unwrap()));
    });
}
