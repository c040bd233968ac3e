//! `rdmacm resolve`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rdmacm_tests::{AcmDaemon, PLAIN, Site, Soft, UNROUTABLE, free_port};
use serde_json::{Value, json};

use super::{Finished, built, rdmacm};
use crate::acm::messages::known;
use rdmacm_tests_macros::case;

/// The name of the device's IPv4 address in /etc/hosts.
fn name(site: &Site) -> &'static str {
    site.driver()
}

#[case]
fn a_name_as_a_table(site: &Site) {
    let finished = rdmacm(&["resolve", name(site), "7471"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let rows = finished.rows();
    let [row] = rows.as_slice() else {
        panic!("{}", finished.stdout);
    };
    assert_eq!(row[0], format!("{}:7471", site.v4));
    assert_eq!(row[1], site.v4.to_string());
    assert_eq!(row[2], format!("{} port 1", site.device));
    assert_eq!(row[3], row[4], "it is its own neighbour");
    match site.soft {
        Soft::Rxe => {
            assert_eq!(row[3], format!("::ffff:{}", site.v4));
            assert_eq!(row[5], "mtu 1024, sl 0, pkey 0xffff, hop limit 64");
        }
        Soft::Siw => assert_eq!(row[5], "-"),
    }
}

#[case]
fn an_ipv6_address_as_a_table(site: &Site) {
    let v6 = site.v6.to_string();
    let finished = rdmacm(&["resolve", &v6, "7471", "--numeric", "--family", "6"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let rows = finished.rows();
    assert_eq!(rows[0][..2], [format!("[{v6}]:7471"), v6]);
}

#[case]
fn a_name_as_json(site: &Site) {
    let finished = rdmacm(&["resolve", name(site), "7471", "--json"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let document = finished.document();
    assert_eq!(document["node"], name(site));
    assert_eq!(document["service"], "7471");
    assert_eq!(document["reachable"], true);
    assert_eq!(document["error"], Value::Null);
    let one = &document["candidates"][0];
    let v4 = site.v4.to_string();
    let address = |port| json!({"address": v4, "port": port, "scope_id": null, "infiniband": null});
    assert_eq!(one["destination"], address(7471));
    assert_eq!(one["source"], address(0));
    assert_eq!(one["family"], "IPv4");
    assert_eq!(one["qp_type"], "RC");
    assert_eq!(one["port_space"], "TCP");
    assert_eq!(one["reachable"], true);
    assert_eq!(one["reason"], Value::Null);
    assert_eq!(one["device"]["name"], site.device);
    assert_eq!(one["device"]["port"], 1);
    assert!(one["device"]["index"].is_u64());
    assert!(one["device"]["guid"].is_string());
    let transport = match site.soft {
        Soft::Rxe => "RoCE",
        Soft::Siw => "iWARP",
    };
    assert_eq!(one["device"]["transport"], transport);
}

#[case]
fn a_path_record_as_json(site: &Site) {
    let document = rdmacm(&["resolve", name(site), "7471", "--json"]).document();
    let one = &document["candidates"][0];
    let paths = one["path_records"].as_array().unwrap();
    match site.soft {
        Soft::Siw => assert!(paths.is_empty()),
        Soft::Rxe => {
            assert_eq!(paths.len(), 1);
            assert_eq!(paths[0]["sgid"], one["source_gid"]);
            assert_eq!(paths[0]["dgid"], one["destination_gid"]);
            assert_eq!(paths[0]["pkey"], 0xffff);
            assert_eq!(paths[0]["mtu"], 3);
            // The kernel has bytes of the MAC address there.
            assert_eq!(
                (&paths[0]["slid"], &paths[0]["dlid"]),
                (&Value::Null, &Value::Null)
            );
        }
    }
}

#[case]
fn an_address_to_listen_on(site: &Site) {
    let finished = rdmacm(&["resolve", name(site), "7471", "--passive", "--json"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let one = &finished.document()["candidates"][0];
    assert_eq!(one["destination"], Value::Null);
    assert_eq!(one["source"]["port"], 7471);
    assert_eq!(one["device"]["name"], site.device);
}

#[case]
fn a_privileged_port_needs_no_privilege_to_be_resolved(site: &Site) {
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-net_bind_service"])
        .arg(built("rdmacm"))
        .args(["resolve", name(site), "1", "--passive"])
        .output()
        .unwrap();
    let finished = Finished::from(output);
    assert_eq!(
        finished.code,
        Some(0),
        "{}{}",
        finished.stdout,
        finished.stderr
    );
    assert_eq!(finished.rows()[0][1], format!("{}:1", site.v4));
}

#[case]
fn a_source_is_used(site: &Site) {
    let v6 = site.v6.to_string();
    let finished = rdmacm(&["resolve", &v6, "7471", "--source", &v6]);
    assert_eq!(finished.code, Some(0), "{}", finished.stdout);
    let foreign = rdmacm(&["resolve", &v6, "7471", "--source", "fd71:ffff::1"]);
    assert_eq!(foreign.code, Some(1));
    assert!(foreign.stdout.contains("source"), "{}", foreign.stdout);
}

#[case]
fn without_routes(site: &Site) {
    let finished = rdmacm(&["resolve", name(site), "7471", "--no-route"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.rows()[0][5], "-");
}

#[case]
fn an_unreachable_address_fails_with_the_reason(_: &Site) {
    for (node, reason) in [
        (PLAIN.to_string(), "no RDMA device"),
        (UNROUTABLE.to_string(), "no route leads there"),
        ("127.0.0.1".to_owned(), "loopback"),
    ] {
        let finished = rdmacm(&["resolve", &node, "7471"]);
        assert_eq!(finished.code, Some(1));
        assert!(finished.stdout.contains(reason), "{}", finished.stdout);
    }
}

#[case(waiting)]
fn one_reached_address_is_success(site: &Site) {
    let both = rdmacm(&["resolve", "dual", "7471", "--source", &site.v4.to_string()]);
    // The IPv4 source reaches one of rxe's two addresses and none of siw's.
    let code = match site.soft {
        Soft::Rxe => 0,
        Soft::Siw => 1,
    };
    assert_eq!(both.code, Some(code), "{}", both.stdout);
    assert_eq!(both.rows().len(), 2, "{}", both.stdout);
}

#[case]
fn an_unreachable_address_as_json(site: &Site) {
    let unreached = PLAIN.to_string();
    let finished = rdmacm(&[
        "resolve",
        &unreached,
        "7471",
        "--json",
        "--source",
        &site.v6.to_string(),
    ]);
    assert_eq!(finished.code, Some(1));
    assert_eq!(finished.stderr, "");
    let document = finished.document();
    assert_eq!(document["reachable"], false);
    let one = &document["candidates"][0];
    let reason = one["reason"].as_str().unwrap();
    assert!(reason.contains("family"), "{reason}");
    assert_eq!(one["device"], Value::Null);
    assert_eq!(one["path_records"], json!([]));
}

#[case]
fn a_silent_neighbour_fails_at_the_timeout(site: &Site) {
    let silent = site.silent.to_string();
    let finished = rdmacm(&["resolve", &silent, "7471", "--timeout", "300"]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stdout.contains("answer"), "{}", finished.stdout);
}

/// The same result, reported by an event.
#[case]
fn with_a_resolve_event(site: &Site) {
    let arguments = ["resolve", name(site), "7471", "--no-route", "--json"];
    let by_event = rdmacm(&[&arguments[..], &["--async"]].concat());
    assert_eq!(by_event.code, Some(0), "{}", by_event.stderr);
    assert_eq!(by_event.document(), rdmacm(&arguments).document());
    let nobody = rdmacm(&["resolve", "nobody.invalid", "--async", "--numeric"]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("not known"), "{}", nobody.stderr);
}

#[case]
fn paths_as_text(site: &Site) {
    let finished = rdmacm(&["resolve", name(site), "7471", "--routes"]);
    let gid = format!("::ffff:{}", site.v4);
    let path = format!("path to {}:7471: from {gid} to {gid}", site.v4);
    let line = finished.stdout.lines().find(|line| line.starts_with(&path));
    match (site.soft, line) {
        (Soft::Siw, None) => {}
        (Soft::Rxe, Some(line)) => {
            for words in ["partition 0xffff", "1024 bytes a packet", "both ways"] {
                assert!(line.contains(words), "{line}");
            }
            for document in [line, &document_words(site)] {
                assert!(!document.contains("LID"), "{document}");
            }
        }
        _ => panic!("{}", finished.stdout),
    }
}

/// The text of the first path in the document.
fn document_words(site: &Site) -> String {
    let document = rdmacm(&["resolve", name(site), "7471", "--json"]).document();
    let words = &document["candidates"][0]["path_records"][0]["words"];
    words.as_str().unwrap().to_owned()
}

#[case]
fn every_local_address(site: &Site) {
    let finished = rdmacm(&["resolve", "--local"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let rows = finished.rows();
    for ip in site.ips() {
        let row = rows.iter().find(|row| row[1] == ip.to_string()).unwrap();
        assert_eq!(row[2], format!("{} port 1", site.device));
    }
    let plain = PLAIN.to_string();
    assert!(
        rows.iter().all(|row| row[1] != plain),
        "{}",
        finished.stdout
    );
}

#[case]
fn an_interface_and_a_device_to_listen_on(site: &Site) {
    for thing in [site.netdev, site.device] {
        let finished = rdmacm(&["resolve", thing, "7471", "--passive", "--family", "4"]);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert_eq!(finished.rows()[0][1], format!("{}:7471", site.v4));
    }
}

/// Neither device is InfiniBand.
#[case]
fn a_gid_is_for_infiniband(_: &Site) {
    let finished = rdmacm(&["resolve", "fe80::7", "7471", "--family", "ib"]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stdout.contains("fe80::7"), "{}", finished.stdout);
    assert!(
        finished.stdout.contains("InfiniBand"),
        "{}",
        finished.stdout
    );
    let document = rdmacm(&["resolve", "fe80::7", "7471", "--family", "ib", "--json"]).document();
    let to = &document["candidates"][0]["destination"];
    assert_eq!(to["address"], "fe80::7");
    assert_eq!(to["port"], 7471);
    assert_eq!(to["infiniband"]["service_id"], "0x0000000001061d2f");
    let name = rdmacm(&["resolve", "somebody", "7471", "--family", "ib"]);
    assert_eq!(name.code, Some(1));
}

#[case]
fn a_service_needs_an_infiniband_port(_: &Site) {
    for how in [&[][..], &["--async"]] {
        let finished = rdmacm(&[&["resolve", "--sa", "0x7147"], how].concat());
        assert_eq!(finished.code, Some(1), "{}", finished.stdout);
        assert!(
            finished.stderr.contains("InfiniBand"),
            "{}",
            finished.stderr
        );
    }
}

/// The path is equal for every peer: iWARP does not use it.
#[case]
fn with_ibacm(site: &Site) {
    let rundir = PathBuf::from(format!("/tmp/rdmacm-ibacm-{}", free_port()));
    fs::create_dir(&rundir).unwrap();
    let acts = known(site);
    let daemon = AcmDaemon::unix(&rundir, move |_| acts.clone());
    let acm = format!("--acm={}", rundir.display());
    let finished = rdmacm(&["resolve", name(site), "7471", &acm, "--routes"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
    assert!(
        finished.stdout.contains(" by ibacm: "),
        "{}",
        finished.stdout
    );
    let finished = rdmacm(&["resolve", name(site), "7471", &acm, "--json"]);
    let one = &finished.document()["candidates"][0];
    let paths = one["paths"].as_array().unwrap();
    assert_eq!((paths.len(), &paths[0]["dgid"]), (1, &json!("fe80::2")));
    assert_eq!(one["connect_data"], "");
    assert_eq!(daemon.requests(2).len(), 2);
    drop(daemon);
    fs::remove_dir(&rundir).unwrap();
}

#[case]
fn without_ibacm(site: &Site) {
    let finished = rdmacm(&["resolve", name(site), "7471", "--acm=/nonexistent"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let words = "ibacm in /nonexistent knows no path there";
    assert!(finished.stderr.contains(words), "{}", finished.stderr);
}
