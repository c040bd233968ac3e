//! Device removal, each test with devices of its own.

use std::sync::Once;
use std::thread;
use std::time::Instant;

use rdmacm_addrinfo::{Hints, resolve};
use rdmacm_core::{
    ConnParam, Error, EventKind, IbService, IdHandle, JoinFlags, Notification, PortSpace, QpState,
    QpType, RdmaDevice,
};
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft, expect};
use rdmacm_verbs::{Context, Error as VerbsError, QueuePair, SendOperation, SendRequest};

use crate::data::teardown::given_up;
use crate::data::{room, roomy};
use crate::link::{Link, run};
use rdmacm_tests_macros::case;

#[case(alone)]
fn an_id_reports_device_removal(site: &Site) {
    let link = Link::new(site);
    let (channel, id) = site.id();
    id.bind(link.address).unwrap();
    link.remove_device();
    let event = channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.kind(), EventKind::DeviceRemoval);
    assert!(event.failure().unwrap().to_string().contains("going away"));
    let error = id.listen(1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
    assert!(error.to_string().contains("drop the id"), "{error}");
    drop(id);
    let ordinary = site.resolved(&channel, site.v4(7471));
    ordinary.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
}

/// In particular not the name of another device with the same GUID.
#[case(alone)]
fn a_removed_device_has_no_name(site: &Site) {
    let link = Link::new(site);
    let twin = format!("twin{}", link.netdev);
    let other = match site.soft {
        Soft::Rxe => "siw",
        Soft::Siw => "rxe",
    };
    run(&format!(
        "rdma link add {twin} type {other} netdev {}",
        link.netdev
    ));
    let devices = RdmaDevice::list().unwrap();
    let find = |name: &str| devices.iter().find(|one| one.name == name).unwrap();
    let device = find(&link.device);
    assert_eq!(device.guid, find(&twin).guid);
    let id = rdmacm_core::DeviceId {
        index: device.index,
        guid: device.guid,
    };
    assert_eq!(id.look_up().unwrap().name, link.device);
    link.remove_device();
    assert_eq!(id.look_up(), None);
    assert!(device.ports().is_err());
}

/// Not the one that it had when the address was resolved.
#[case(alone)]
fn a_resolved_address_has_the_devices_present_name(site: &Site) {
    let link = Link::new(site);
    let address = link.address.ip().unwrap().to_string();
    let found = resolve(&*address, "7471", &Hints::rc()).unwrap();
    let device_port = found[0].device_port().unwrap();
    let name = || device_port.rdma_device().map(|device| device.name);
    assert_eq!(name().as_ref(), Some(&link.device));
    let renamed = format!("r{}", link.device);
    run(&format!("rdma dev set {} name {renamed}", link.device));
    assert_eq!(device_port.to_string(), format!("{renamed} port 1"));
    run(&format!("rdma dev set {renamed} name {}", link.device));
    link.remove_device();
    assert_eq!(name(), None);
}

#[case(alone)]
fn the_gids_of_a_context_are_those_of_a_renamed_device(site: &Site) {
    let link = Link::new(site);
    let devices = RdmaDevice::list().unwrap();
    let device = devices.iter().find(|one| one.name == link.device).unwrap();
    let context = Context::open(device).unwrap();
    let before = context.gid(1, 0).unwrap();
    let renamed = format!("r{}", link.device);
    run(&format!("rdma dev set {} name {renamed}", link.device));
    assert_eq!(context.gid(1, 0), Ok(before));
    run(&format!("rdma dev set {renamed} name {}", link.device));
    drop(context);
    link.remove_device();
}

/// The driver may make removal wait for them, or disable them.
#[case(alone)]
fn removal_completes_when_contexts_are_closed(site: &Site) {
    let link = Link::new(site);
    let devices = RdmaDevice::list().unwrap();
    let device = devices.iter().find(|one| one.name == link.device).unwrap();
    let context = Context::open(device).unwrap();
    let queue_pair = QueuePair::options(QpType::RC).create(&context).unwrap();
    thread::scope(|scope| {
        let removal = scope.spawn(|| link.remove_device());
        drop((context, queue_pair));
        removal.join().unwrap();
    });
    let error = Context::open(device).unwrap_err();
    assert!(matches!(error, VerbsError::NoNode { .. }), "{error}");
}

/// Closes the context with `check` while the device is removed.
fn checks_removal(link: &Link, context: &Context, check: impl Fn()) {
    thread::scope(|scope| {
        let removing = scope.spawn(|| link.remove_device());
        let until = Instant::now() + PATIENCE;
        while !context.is_closed() && Instant::now() < until {
            check();
            thread::yield_now();
        }
        let heeded = context.is_closed();
        // Lets the removal finish in any case.
        context.close();
        removing.join().unwrap();
        assert!(heeded);
    });
}

/// No thread waits that could detect the removal.
#[case(alone)]
fn removal_completes_under_a_polling_caller(site: &Site) {
    let link = Link::new(site);
    let context = link.site(site).verbs();
    checks_removal(&link, &context, || context.check_removal());
}

/// The announcement of an earlier removal was not read.
#[case(alone)]
fn removal_is_reported_to_a_late_reader(site: &Site) {
    let link = Link::new(site);
    let context = link.site(site).verbs();
    let node = link.verbs_node();
    // Once is enough.
    let late = Once::new();
    checks_removal(&link, &context, || {
        if !node.exists() {
            late.call_once(|| context.check_removal());
        }
    });
}

/// A waiting thread detects the removal and closes the device.
#[case(alone)]
fn removal_ends_live_connections(site: &Site) {
    let link = Link::new(site);
    let pair = roomy(&link.site(site));
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    for queue_pair in [client, server] {
        for _ in 0..3 {
            queue_pair.post_receive(room(queue_pair, 4)).unwrap();
        }
    }
    let events = client.context().async_events().unwrap();
    thread::scope(|scope| {
        let waits = [client, server].map(|queue_pair| {
            scope.spawn(|| {
                assert_eq!(given_up(queue_pair.recv_cq()), 3);
                assert_eq!(given_up(queue_pair.send_cq()), 0);
            })
        });
        let event = scope.spawn(|| {
            loop {
                // Events of the queue pair and the port may come first.
                match events.next(PATIENCE) {
                    Ok(event) => assert!(event.is_some()),
                    Err(error) => return assert!(error.is_context_closed(), "{error}"),
                }
            }
        });
        link.remove_device();
        for wait in waits {
            wait.join().unwrap();
        }
        event.join().unwrap();
    });
    for queue_pair in [client, server] {
        assert!(queue_pair.context().is_closed());
        let request = SendRequest::inline(SendOperation::Send, b"x");
        // Or it has failed before.
        assert!(queue_pair.post_send(request).is_err());
        assert!(queue_pair.recv_cq().poll().unwrap_err().is_context_closed());
    }
}

type Command = fn(&Site, &IdHandle) -> Result<(), Error>;

/// Each command about an id that both kernels have.
const COMMANDS: &[(&str, Command)] = &[
    ("bind", |site, id| id.bind(site.v4(0))),
    ("listen", |_, id| id.listen(1)),
    ("resolve the address", |site, id| {
        id.resolve_addr(None, site.v4(7471), SECOND)
    }),
    ("resolve the route", |_, id| id.resolve_route(SECOND)),
    ("addresses", |_, id| id.addresses().map(drop)),
    ("gids", |_, id| id.gids().map(drop)),
    ("paths", |_, id| id.path_records().map(drop)),
    ("tos", |_, id| id.set_tos(8)),
    ("connect", |_, id| id.connect(ConnParam::new())),
    ("accept", |_, id| id.accept(ConnParam::new())),
    ("establish", |_, id| id.establish()),
    ("reject", |_, id| id.reject(&[])),
    ("disconnect", |_, id| id.disconnect()),
    ("notify", |_, id| {
        id.notify(Notification::CommunicationEstablished)
    }),
    ("attributes", |_, id| {
        id.init_qp_attr(QpState::INIT).map(drop)
    }),
    ("join", |_, id| {
        let group = ([239, 71, 2, 1], 0);
        id.join_multicast(group, JoinFlags::FULL_MEMBER).map(drop)
    }),
];

/// The newer commands: an older kernel reports that it lacks them.
const NEWER_COMMANDS: &[Command] = &[
    |_, id| id.write_event(0, 1),
    |_, id| id.resolve_ib_service(IbService::with_id(1)).map(drop),
    |_, id| id.ib_service_records().map(drop),
];

fn assert_half_dead(what: &str, outcome: Result<(), Error>) {
    let error = outcome.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENXIO), "{what}: {error}");
    assert!(error.to_string().contains("drop the id"), "{error}");
}

#[case(alone)]
fn every_command_of_a_removed_id_reports_it(site: &Site) {
    let link = Link::new(site);
    let channel = site.channel();
    let ids = [PortSpace::TCP, PortSpace::UDP].map(|port_space| {
        let id = channel.create_id(port_space).unwrap();
        id.bind(link.address).unwrap();
        id
    });
    link.remove_device();
    for _ in &ids {
        let event = channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::DeviceRemoval);
    }
    for id in ids {
        for (what, command) in COMMANDS {
            assert_half_dead(what, command(site, &id));
        }
        for command in NEWER_COMMANDS {
            match command(site, &id) {
                Err(Error::Unsupported { .. }) => {}
                outcome => assert_half_dead("a newer command", outcome),
            }
        }
        assert_half_dead("migrate", id.migrate(&site.channel()));
        drop(id);
    }
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case(alone)]
fn a_listener_reports_device_removal(site: &Site) {
    let link = Link::new(site);
    let (channel, bound) = site.id();
    bound.bind(link.address).unwrap();
    bound.listen(1).unwrap();
    let wildcard = channel.create_id(PortSpace::TCP).unwrap();
    wildcard.listen(1).unwrap();
    link.remove_device();
    let event = channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.kind(), EventKind::DeviceRemoval);
    assert!(*event.id() == bound);
    drop(bound);
    // The other device's listener listens on the remaining devices.
    assert!(channel.try_next_event().unwrap().is_none());
    wildcard.addresses().unwrap();
}
