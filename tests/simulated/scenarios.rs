//! The scenarios of the guest suite, on a simulated host: this library must receive the
//! answers that librdmacm receives from a real kernel.
#![cfg(test)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use rdmacm_core::{AddressAbi, Error, EventChannel};
use rdmacm_sim::{Adapter, Fabric, Host};
use rdmacm_tests::scenarios::{self, Library, LibraryActor, Machine};
use rdmacm_tests::{PLAIN, Site, Soft, UNROUTABLE};
use rdmacm_verbs::DeviceSource;

/// Scenarios that need what a simulated host does not have, and what that is.
const NOT_SIMULATED: &[(&str, &str)] = &[
    ("bind_a_privileged_port", "users with other privileges"),
    ("udp_resolve", "queue pairs for datagrams"),
];

/// Both actors are processes of this host.
struct Simulated(Host);

impl Machine for Simulated {
    fn open_channel(&self) -> Result<EventChannel, Error> {
        self.0.channel_options().unwrap().open()
    }

    fn devices(&self) -> &dyn DeviceSource {
        &self.0
    }
}

#[test]
fn roce() {
    compare_all(&Site::rxe(AddressAbi::AnyFamily), Adapter::roce);
}

#[test]
fn iwarp() {
    compare_all(&Site::siw(AddressAbi::AnyFamily), Adapter::iwarp);
}

#[test]
fn what_is_not_simulated_exists() {
    let scenarios = scenarios::scenarios(Soft::Rxe);
    for (name, _) in NOT_SIMULATED {
        assert!(
            scenarios.iter().any(|scenario| scenario.name == *name),
            "{name}"
        );
    }
}

fn compare_all(site: &Site, adapter: fn(&'static str) -> Adapter) {
    let mut recorded = scenarios::recorded(site.soft);
    let mut failures = Vec::new();
    for scenario in scenarios::scenarios(site.soft) {
        let expected = recorded.remove(scenario.name.as_str()).unwrap();
        if NOT_SIMULATED.iter().any(|(name, _)| *name == scenario.name) {
            continue;
        }
        let adapter = adapter(site.device).address(site.v4).address(site.v6);
        let host = Fabric::new().host([adapter]);
        host.add_non_rdma_interface(PLAIN.into());
        host.remove_route(UNROUTABLE.into());
        let mut actors = [(); 2].map(|()| LibraryActor::new(Simulated(host.clone())));
        let libraries = [Library::Ours, Library::Ours];
        let run = AssertUnwindSafe(|| scenarios::run(&scenario, site, libraries, &mut actors));
        let ran = catch_unwind(run).unwrap_or_else(|_| Err("a panic".to_owned()));
        if let Err(error) = ran.and_then(|ran| expected.compare(&ran, &scenario)) {
            failures.push(format!("{}: {error}", scenario.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
