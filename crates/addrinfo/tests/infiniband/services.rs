//! Services of InfiniBand, on a simulated fabric.

use std::time::Duration;

use rdmacm_addrinfo::{
    AddrInfo, AddrInfoFlags, AddrInfoResolver, Error, Hints, Reason, Step, Unanswered, resolve,
};
use rdmacm_core::{
    CmAddr, CommandNumber, Error as CoreError, Family, IbAddr, PortSpace, QpType, ServiceRecord,
};
use rdmacm_sim::{Adapter, Fabric, Host, KernelVersion, Port, SubnetAdmin};

use crate::fabric::{HERE, SERVICE, THERE, fabric, gid, resolver};

fn find(host: &Host, service: &str, hints: &Hints) -> Result<Vec<AddrInfo>, Error> {
    resolver(host).resolve(None, service, hints)
}

#[track_caller]
fn unanswered(host: &Host, hints: &Hints) -> Vec<Unanswered> {
    match find(host, "storage", hints) {
        Err(Error::NoService(unanswered)) => unanswered,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_service_is_found_by_name_and_by_number() {
    let (_fabric, here) = fabric();
    for service in ["storage", "0x1000000000007147", "1152921504606875975"] {
        let found = find(&here, service, &Hints::new().subnet_administrator()).unwrap();
        let [info] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(info.flags, AddrInfoFlags::SA);
        assert_eq!((info.family, info.port_space), (Family::Ib, PortSpace::IB));
        let destination = IbAddr::new(gid(THERE)).with_service_id(SERVICE);
        assert_eq!(info.destination, Some(destination.into()));
        let source = IbAddr::new(gid(HERE)).with_ip_service(PortSpace::IB, 0);
        assert_eq!(info.source, Some(source.into()));
        assert!(info.connect_data.is_empty());
        let route = info.route.as_ref().unwrap();
        let device_port = route.device_port.as_ref().unwrap();
        assert_eq!(device_port.rdma_device().unwrap().name, "mlx5_0");
        assert_eq!((device_port.port, device_port.source_gid), (1, gid(HERE)));
        assert_eq!(route.path_records[0].record.dgid, gid(THERE));
        assert_eq!(
            info.to_string(),
            "[fe80::2]/service 0x1000000000007147/pkey 0xffff from fe80::1 via mlx5_0 port 1"
        );
    }
}

#[test]
fn every_record_is_an_address_those_reached_first() {
    let (fabric, here) = fabric();
    let mut nobody = ServiceRecord::new(7, gid("fe80::9"));
    let mut somebody = ServiceRecord::new(7, gid(THERE));
    for record in [&mut nobody, &mut somebody] {
        record.name = "spread".try_into().unwrap();
    }
    fabric.register_service(nobody);
    for number in 0..40 {
        let mut record = somebody.clone();
        record.id = number;
        fabric.register_service(record);
    }
    let found = find(&here, "spread", &Hints::new().subnet_administrator()).unwrap();
    assert_eq!(found.len(), 41);
    let ids = found.iter().map(|info| match info.destination {
        Some(CmAddr::Ib(address)) => address.service_id,
        other => panic!("{other:?}"),
    });
    assert!(ids.eq((0..40).chain([7])));
    assert!(found[..40].iter().all(AddrInfo::is_reachable));
    let why = found[40].route.as_ref().unwrap_err();
    assert_eq!(why.step, Step::Route);
    assert!(why.to_string().contains("no path"), "{why}");
}

#[test]
fn without_routes_the_paths_are_left_out() {
    let (_fabric, here) = fabric();
    let hints = Hints::new()
        .subnet_administrator()
        .no_route()
        .qp_type(QpType::UD);
    let found = find(&here, "storage", &hints).unwrap();
    assert_eq!(found[0].qp_type, QpType::UD);
    let route = found[0].route.as_ref().unwrap();
    assert_eq!(route.device_port.as_ref().unwrap().port, 1);
    assert!(route.path_records.is_empty());
}

#[test]
fn a_records_partition_is_the_sources_too() {
    let fabric = Fabric::new();
    let port = |text| Port::new(gid(text)).pkey(0x8001);
    let here = fabric.host([Adapter::infiniband("mlx5_0").port(port(HERE))]);
    let _there = fabric.host([Adapter::infiniband("mlx5_0").port(port(THERE))]);
    let mut record = ServiceRecord::new(SERVICE, gid(THERE));
    record.pkey = 0x8001;
    record.name = "storage".try_into().unwrap();
    fabric.register_service(record);
    let found = find(&here, "storage", &Hints::new().subnet_administrator()).unwrap();
    for address in [found[0].source, found[0].destination] {
        let Some(CmAddr::Ib(address)) = address else {
            panic!("{address:?}");
        };
        assert_eq!(address.pkey, 0x8001);
    }
    let path = found[0].route.as_ref().unwrap().path_records[0];
    assert_eq!(path.record.pkey, 0x8001);
}

#[test]
fn one_port_that_knows_is_enough() {
    let fabric = Fabric::new();
    let adapters = [
        Adapter::infiniband("mlx4_0").port(Port::new(gid("fe80::a")).down()),
        Adapter::infiniband("mlx5_0")
            .port(Port::new(gid("fe80::b")).down())
            .port(Port::new(gid(HERE))),
    ];
    let here = fabric.host(adapters);
    fabric.register_service(ServiceRecord::new(SERVICE, gid(HERE)));
    let found = find(
        &here,
        "0x1000000000007147",
        &Hints::new().subnet_administrator(),
    )
    .unwrap();
    assert_eq!(found[0].device_port().unwrap().port, 2);
}

#[test]
fn a_service_nobody_offers_is_said_for_each_port() {
    let fabric = Fabric::new();
    let adapter = Adapter::infiniband("mlx5_0")
        .port(Port::new(gid(HERE)))
        .port(Port::new(gid("fe80::3")));
    let here = fabric.host([adapter]);
    let unanswered = unanswered(&here, &Hints::new().subnet_administrator());
    let ports: Vec<_> = unanswered.iter().map(|one| one.port.number).collect();
    assert_eq!(ports, [1, 2]);
    for Unanswered { why, .. } in &unanswered {
        assert_eq!(why.step, Step::Service);
        assert!(matches!(why.reason, Reason::Failed(_)), "{why:?}");
    }
    let words = Error::NoService(unanswered).to_string();
    assert!(words.contains("mlx5_0 port 1: "), "{words}");
    assert!(words.contains("knows no such service"), "{words}");
}

#[test]
fn who_refuses_is_not_who_is_silent() {
    let (fabric, here) = fabric();
    let hints = Hints::new().subnet_administrator();
    for (administrator, words) in [
        (SubnetAdmin::Refuses, "refused to answer"),
        (SubnetAdmin::Silent, "did not answer"),
    ] {
        fabric.set_subnet_admin(administrator);
        let error = Error::NoService(unanswered(&here, &hints)).to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_deadline_holds_for_the_administrator() {
    let (fabric, here) = fabric();
    fabric.set_subnet_admin(SubnetAdmin::Silent);
    let begun = fabric.now();
    // The kernel gives up after two seconds.
    let patience = Duration::from_millis(700);
    let unanswered = unanswered(
        &here,
        &Hints::new().subnet_administrator().deadline(patience),
    );
    assert_eq!(fabric.now() - begun, patience);
    assert_eq!(unanswered[0].why.reason, Reason::Deadline);
}

#[test]
fn the_deadline_holds_for_the_service_and_its_route_together() {
    let (fabric, here) = fabric();
    fabric.set_subnet_admin_delay(Duration::from_secs(1));
    let begun = fabric.now();
    let hints = Hints::new()
        .subnet_administrator()
        .deadline(Duration::from_millis(1500));
    let found = find(&here, "storage", &hints).unwrap();
    let why = found[0].route.as_ref().unwrap_err();
    assert_eq!(why.step, Step::Route);
    // The kernel is given what is left, and says so itself.
    let words = why.to_string();
    assert!(
        words.contains("did not answer within the timeout"),
        "{words}"
    );
    assert_eq!(fabric.now() - begun, Duration::from_millis(1500));
}

#[test]
fn a_machine_without_infiniband_says_so() {
    let fabric = Fabric::new();
    let down = Adapter::infiniband("mlx5_0").port(Port::new(gid(HERE)).down());
    for adapters in [vec![], vec![down]] {
        let found = find(
            &fabric.host(adapters),
            "storage",
            &Hints::new().subnet_administrator(),
        );
        assert_eq!(found, Err(Error::NoInfinibandPort));
    }
}

#[test]
fn an_old_kernel_is_not_an_unknown_service() {
    let (_fabric, here) = fabric();
    let here = here.kernel_version(KernelVersion::Linux6_1);
    let command = CommandNumber::RESOLVE_IB_SERVICE;
    match find(&here, "storage", &Hints::new().subnet_administrator()) {
        Err(Error::Rdma(CoreError::Unsupported { command: it, .. })) => assert_eq!(it, command),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_happens() {
    let hints = Hints::new().subnet_administrator();
    let ask = |node: Option<&str>, service: Option<&str>, hints: &Hints| {
        resolve(node, service, hints).unwrap_err()
    };
    let both = hints.clone().flags(AddrInfoFlags::DNS);
    assert_eq!(ask(None, Some("storage"), &both), Error::SaAndDns);
    assert_eq!(ask(Some("host"), Some("7"), &hints), Error::SaWithNode);
    assert_eq!(ask(None, None, &hints), Error::SaWithoutService);
    assert_eq!(ask(None, Some(""), &hints), Error::ServiceName(0));
    let long = "x".repeat(64);
    assert_eq!(ask(None, Some(&long), &hints), Error::ServiceName(64));
    assert_eq!(ask(None, Some("a\0"), &hints), Error::NulInText);
    let qp_type = Hints::new().subnet_administrator().qp_type(QpType::new(77));
    let refused = ask(None, Some("storage"), &qp_type);
    assert!(matches!(refused, Error::QpType { .. }), "{refused:?}");
    let v4 = ([10, 1, 0, 7], 7);
    for contradiction in [
        hints.clone().passive(),
        hints.clone().destination(v4),
        hints.clone().source(v4),
        hints.clone().family(Family::V4),
    ] {
        let refused = ask(None, Some("storage"), &contradiction);
        assert!(matches!(refused, Error::Hints(_)), "{refused:?}");
    }
    let addresses = AddrInfoResolver::new().addresses(None, "storage", &hints);
    assert!(matches!(addresses, Err(Error::Hints(_))), "{addresses:?}");
}

#[test]
fn dns_is_what_happens_anyway() {
    let hints = Hints::rc().flags(AddrInfoFlags::DNS);
    let found = AddrInfoResolver::new().addresses("10.1.0.7", "7471", &hints);
    assert_eq!(found, Ok(vec![([10, 1, 0, 7], 7471).into()]));
}

#[test]
fn every_port_without_an_answer_is_named() {
    let fabric = Fabric::new();
    let ports = ["fe80::a", "fe80::b"].map(|text| Port::new(gid(text)));
    let adapter = ports
        .into_iter()
        .fold(Adapter::infiniband("mlx5_0"), Adapter::port);
    let host = fabric.host([adapter]);
    let refused = find(&host, "storage", &Hints::new().subnet_administrator());
    let words = refused.unwrap_err().to_string();
    let told = "no subnet administrator knows the service: mlx5_0 port 1: ";
    assert!(words.starts_with(told), "{words}");
    assert!(words.contains("; mlx5_0 port 2: "), "{words}");
}
