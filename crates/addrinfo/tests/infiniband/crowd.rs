//! A name with more addresses than are asked for at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rdmacm_addrinfo::{AddrInfoResolver, Hints, Reason};
use rdmacm_core::ucma::UcmaFile;
use rdmacm_core::{CommandNumber, EventChannel, PortSpace, ServiceRecord};
use rdmacm_sim::{Fabric, Host};
use rdmacm_test_helpers::ucma_file_over;

use crate::fabric::{SERVICE, THERE, fabric, gid};

/// As many records of a service.
const CROWD: usize = 200;
/// The most that are asked for at a time, and the id that knew the service.
const MOST: usize = 64 + 1;

/// A kernel, with a count of its ids.
#[derive(Debug)]
struct Counting {
    kernel: Arc<dyn UcmaFile>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    made: AtomicUsize,
    living: AtomicUsize,
    most: AtomicUsize,
}

ucma_file_over!(Counting, kernel, |this, call| {
    this.kernel.execute(call)?;
    let counts = &this.counts;
    match call.number() {
        CommandNumber::CREATE_ID => {
            counts.made.fetch_add(1, Ordering::Relaxed);
            let living = counts.living.fetch_add(1, Ordering::Relaxed) + 1;
            counts.most.fetch_max(living, Ordering::Relaxed);
        }
        CommandNumber::DESTROY_ID => {
            counts.living.fetch_sub(1, Ordering::Relaxed);
        }
        _ => {}
    }
    Ok(())
});

fn crowd() -> (Fabric, Host) {
    let (fabric, here) = fabric();
    for number in 1..u64::try_from(CROWD).unwrap() {
        let mut record = ServiceRecord::new(SERVICE, gid(THERE));
        record.data.longs[0] = number;
        fabric.register_service(record);
    }
    (fabric, here)
}

fn counted(host: &Host) -> (AddrInfoResolver, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let (host, shared) = (host.clone(), Arc::clone(&counts));
    let open = move || {
        let device = Counting {
            kernel: host.open().unwrap(),
            counts: Arc::clone(&shared),
        };
        let options = EventChannel::options().ucma(Arc::new(device));
        options.devices(Arc::new(host.clone())).open()
    };
    (AddrInfoResolver::new().channels(open), counts)
}

fn service() -> String {
    format!("{SERVICE:#x}")
}

#[test]
fn a_crowd_is_asked_for_in_turn() {
    let (_fabric, here) = crowd();
    let (resolver, counts) = counted(&here);
    let hints = Hints::new().subnet_administrator();
    let found = resolver.resolve(None, service().as_str(), &hints).unwrap();
    assert_eq!(found.len(), CROWD);
    for info in &found {
        assert!(info.is_reachable(), "{info}");
        assert_eq!(info.port_space, PortSpace::IB);
    }
    let most = counts.most.load(Ordering::Relaxed);
    assert!(most <= MOST, "{most}");
}

/// Each of them has its part of the time: those that do not answer do not keep the
/// others from being asked.
#[test]
fn everybody_in_a_crowd_has_a_turn() {
    let (fabric, here) = crowd();
    let (resolver, counts) = counted(&here);
    fabric.set_subnet_admin_delay(Duration::from_secs(1));
    let hints = Hints::new()
        .subnet_administrator()
        .deadline(Duration::from_secs(4));
    let begun = fabric.now();
    let found = resolver.resolve(None, service().as_str(), &hints).unwrap();
    assert_eq!(found.len(), CROWD);
    for info in &found {
        let why = info.route.as_ref().unwrap_err();
        assert!(matches!(why.reason, Reason::Failed(_)), "{why}");
    }
    assert!(counts.made.load(Ordering::Relaxed) >= CROWD);
    assert!(fabric.now() - begun <= Duration::from_secs(4));
}
