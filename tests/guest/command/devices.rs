//! `rdmacm devices`.

use std::fs;
use std::process::Command;

use rdmacm_tests::{Site, Soft};
use serde_json::Value;

use super::rdmacm;
use rdmacm_tests_macros::case;

#[case]
fn a_device_in_the_table(site: &Site) {
    let finished = rdmacm(&["devices"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let rows = finished.rows();
    let row = rows.iter().find(|row| row[1] == site.device).unwrap();
    let transport = match site.soft {
        Soft::Rxe => "RoCE",
        Soft::Siw => "iWARP",
    };
    assert_eq!(row[2], transport);
    assert_eq!(row[3], sysfs(site, "node_guid"));
    assert_eq!(row[4..8], ["1", "ACTIVE", "LINK_UP", site.netdev]);
    for ip in site.ips() {
        assert!(row[8].split(", ").any(|own| own == ip.to_string()));
    }
}

#[case]
fn a_device_as_json_matches_sysfs(site: &Site) {
    let device = document(site);
    assert_eq!(device["guid"], sysfs(site, "node_guid"));
    let port = &device["ports"][0];
    assert_eq!(device["ports"].as_array().unwrap().len(), 1);
    assert_eq!(port["port"], 1);
    // In sysfs: `4: ACTIVE` and `5: LinkUp`.
    let state = sysfs(site, "ports/1/state");
    assert!(state.ends_with(port["state"].as_str().unwrap()), "{state}");
    assert_eq!(sysfs(site, "ports/1/phys_state"), "5: LinkUp");
    assert_eq!(port["link"], "LINK_UP");
    let node_type = match device["transport"].as_str().unwrap() {
        "RoCE" => "1: CA",
        "iWARP" => "4: RNIC",
        other => panic!("{other}"),
    };
    assert_eq!(sysfs(site, "node_type"), node_type);
}

#[case]
fn its_index_and_port_match_netlink(site: &Site) {
    let device = document(site);
    let link = iproute(
        "rdma",
        &["-j", "link", "show", &format!("{}/1", site.device)],
    );
    let link = &link[0];
    let port = &device["ports"][0];
    assert_eq!(device["index"], link["ifindex"]);
    assert_eq!(device["name"], link["ifname"]);
    assert_eq!(port["state"], link["state"]);
    assert_eq!(port["link"], link["physical_state"]);
    assert_eq!(port["netdev"], link["netdev"]);
}

#[case]
fn its_addresses_are_its_interfaces(site: &Site) {
    let link = iproute("ip", &["-j", "address", "show", "dev", site.netdev]);
    let listed = link[0]["addr_info"].as_array().unwrap();
    let mut expected: Vec<_> = listed
        .iter()
        .map(|one| match (&one["local"], &one["scope"]) {
            // With its scope, in the form that `rdmacm resolve` takes.
            (local, scope) if scope == "link" => {
                format!("{}%{}", local.as_str().unwrap(), site.netdev)
            }
            (local, _) => local.as_str().unwrap().to_owned(),
        })
        .collect();
    let device = document(site);
    let ours = device["ports"][0]["addresses"].as_array().unwrap();
    let mut ours: Vec<_> = ours
        .iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect();
    expected.sort();
    ours.sort();
    assert_eq!(ours, expected);
}

/// The site's device in the command's JSON document.
fn document(site: &Site) -> Value {
    let finished = rdmacm(&["devices", "--json"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let document = finished.document();
    assert_eq!(document["error"], Value::Null);
    let devices = document["devices"].as_array().unwrap();
    let found = devices.iter().find(|one| one["name"] == site.device);
    found.unwrap().clone()
}

fn iproute(program: &str, arguments: &[&str]) -> Value {
    let output = Command::new(program).args(arguments).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sysfs(site: &Site, file: &str) -> String {
    let path = format!("/sys/class/infiniband/{}/{file}", site.device);
    fs::read_to_string(path).unwrap().trim().to_owned()
}
