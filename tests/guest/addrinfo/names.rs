//! Names with one address and with several.

use std::process::Command;

use rdmacm_addrinfo::{AddrInfo, Error, Hints, NameError};
use rdmacm_core::{CmAddr, Family, QpType};
use rdmacm_tests::{PATIENCE, Site};

use super::private_etc::PrivateEtc;
use super::{only, rc, resolve};
use rdmacm_tests_macros::case;

/// The output of the system's `getent`: addresses in order, canonical name.
fn getent(name: &str) -> (Vec<String>, String) {
    let output = Command::new("getent").args(["ahosts", name]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let rows: Vec<Vec<_>> = text
        .lines()
        .map(|line| line.split_ascii_whitespace().collect())
        .collect();
    let streams = rows.iter().filter(|row| row[1] == "STREAM");
    let addresses = streams.map(|row| row[0].to_owned()).collect();
    (addresses, rows[0][2].to_owned())
}

fn addresses(found: &[AddrInfo]) -> Vec<String> {
    let ips = found.iter().map(|info| info.destination.unwrap().ip());
    ips.map(|ip| ip.unwrap().to_string()).collect()
}

/// `rxe` and `rxe6`, `siw` and `siw6`.
#[case(each_abi)]
fn names_of_the_hosts_file(site: &Site) {
    let driver = site.driver();
    for (name, ip) in [driver.to_owned(), format!("{driver}6")]
        .iter()
        .zip(site.ips())
    {
        let info = only(resolve(site, name.as_str(), "7471", &rc()));
        assert_eq!(info.destination, Some(CmAddr::from((ip, 7471))));
        assert!(info.is_reachable(), "{info}");
    }
}

#[case(each_abi)]
fn every_address_of_a_name_in_the_systems_order(site: &Site) {
    let hosts = format!("{} both\n{} both\n", site.v4, site.v6);
    PrivateEtc::new().file("hosts", &hosts).run(|| {
        let found = resolve(site, "both", "7471", &rc()).unwrap();
        assert!(found.iter().all(AddrInfo::is_reachable), "{found:?}");
        assert_eq!(found.len(), 2);
        assert_eq!(addresses(&found), getent("both").0);
    });
}

#[case(each_abi)]
fn a_family_leaves_the_other_addresses_out(site: &Site) {
    for (family, ip) in [Family::V4, Family::V6].into_iter().zip(site.ips()) {
        let hosts = format!("{} both\n{} both\n", site.v4, site.v6);
        PrivateEtc::new().file("hosts", &hosts).run(|| {
            let info = only(resolve(site, "both", "7471", &rc().family(family)));
            assert_eq!(info.destination, Some(CmAddr::from((ip, 7471))));
        });
    }
}

#[case(each_abi)]
fn addresses_on_two_devices(site: &Site) {
    let found = resolve(site, "pair", "7471", &rc()).unwrap();
    let named = |info: &AddrInfo| Some(info.device_port()?.rdma_device()?.name);
    let mut devices: Vec<_> = found.iter().filter_map(named).collect();
    assert_eq!(addresses(&found), getent("pair").0);
    devices.sort();
    assert_eq!(devices, ["rxe0", "siw0"]);
}

#[case(each_abi)]
fn unreachable_addresses_come_last_with_their_cause(site: &Site) {
    let reached = site.v4.to_string();
    let hosts = format!("10.71.3.1 mixed\n{reached} mixed\n203.0.113.1 mixed\n");
    PrivateEtc::new().file("hosts", &hosts).run(|| {
        let (mut order, _) = getent("mixed");
        assert_ne!(order[0], reached, "nothing to be put behind");
        let found = resolve(site, "mixed", "7471", &rc()).unwrap();
        order.retain(|ip| *ip != reached);
        order.insert(0, reached.clone());
        assert_eq!(addresses(&found), order);
        assert!(found[0].is_reachable());
        for unreached in &found[1..] {
            let words = unreached.route.as_ref().unwrap_err().to_string();
            assert!(
                words.contains("no RDMA") || words.contains("no route"),
                "{words}"
            );
        }
    });
}

#[case(each_abi)]
fn the_canonical_name_is_on_the_first_address(site: &Site) {
    let hosts = format!("{0} first both\n{1} both\n{1} second\n", site.v4, site.v6);
    PrivateEtc::new().file("hosts", &hosts).run(|| {
        let found = resolve(site, "both", "7471", &rc().canonical_name()).unwrap();
        assert_eq!(found[0].canonical_name, Some(getent("both").1));
        assert_eq!(found[1].canonical_name, None);
    });
}

#[case(each_abi)]
fn a_service_is_known_by_its_name_and_kind(site: &Site) {
    let services = "storage 7471/tcp\nstorage 7472/udp\n";
    PrivateEtc::new().file("services", services).run(|| {
        let v4 = site.v4.to_string();
        for (qp_type, port) in [(QpType::RC, 7471), (QpType::UD, 7472)] {
            let hints = Hints::new().qp_type(qp_type).deadline(PATIENCE);
            let info = only(resolve(site, v4.as_str(), "storage", &hints));
            assert_eq!(info.destination, Some(site.v4(port)));
        }
    });
}

#[case(each_abi)]
fn an_unknown_name(site: &Site) {
    let found = resolve(site, "nobody", "7471", &rc());
    assert_eq!(found, Err(Error::Name(NameError::NoName)));
}
