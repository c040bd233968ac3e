//! Which command is for which state, by the transitions of the kernel's `cma.c`
//! (`cma_comp_exch`): any other is `EINVAL` and changes nothing.

use std::sync::Arc;
use std::time::Duration;

use rdmacm_abi::{NoResponse, ResolveIbService};
use rdmacm_core::ucma::{Attachment, UcmaFile, transact};
use rdmacm_core::{
    CmId, Error, EventChannel, EventKind, Gid, IbAddr, IbService, PathData, PortSpace,
    ServiceRecord,
};

use crate::{GID, PEER, SECOND, TwoHosts, expect, gid, resolved};

const SERVICE: u64 = 0x7147;

/// The states of an id, with and without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    BoundToNothing,
    Bound,
    AddrResolved,
    AddrInfoQuery,
    AddrInfoResolved,
    RouteQuery,
    RouteResolved,
}

use State::{
    AddrInfoQuery, AddrInfoResolved, AddrResolved, Bound, BoundToNothing, Idle, RouteQuery,
    RouteResolved,
};

const STATES: [State; 8] = [
    Idle,
    BoundToNothing,
    Bound,
    AddrResolved,
    AddrInfoQuery,
    AddrInfoResolved,
    RouteQuery,
    RouteResolved,
];

/// An id in this state.
fn id_in(state: State, hosts: &TwoHosts, channel: &EventChannel) -> CmId {
    hosts.fabric.set_subnet_admin_delay(Duration::ZERO);
    let id = match state {
        AddrResolved | RouteQuery | RouteResolved => resolved(channel),
        _ => channel.create_id(PortSpace::IB).unwrap(),
    };
    if [AddrInfoQuery, RouteQuery].contains(&state) {
        hosts.fabric.set_subnet_admin_delay(SECOND);
    }
    match state {
        Idle | AddrResolved => {}
        BoundToNothing => id.bind(IbAddr::new(Gid::UNSPECIFIED)).unwrap(),
        Bound | AddrInfoQuery | AddrInfoResolved => id.bind(IbAddr::new(gid(GID))).unwrap(),
        RouteQuery | RouteResolved => id.resolve_route(2 * SECOND).unwrap(),
    }
    if [AddrInfoQuery, AddrInfoResolved].contains(&state) {
        id.resolve_ib_service(IbService::with_id(SERVICE)).unwrap();
    }
    match state {
        AddrInfoResolved => expect(channel, EventKind::AddrInfoResolved),
        RouteResolved => expect(channel, EventKind::RouteResolved),
        _ => {}
    }
    id
}

/// The error number of what was refused.
fn of(outcome: Result<(), Error>) -> Option<i32> {
    let errno = |error: Error| error.raw_os_error().unwrap_or(-1);
    outcome.map_err(errno).err()
}

/// The command succeeds in these states and is `EINVAL` in the others.
#[track_caller]
fn only_in(states: &[State], command: impl Fn(&CmId, &dyn UcmaFile) -> Option<i32>) {
    for state in STATES {
        let hosts = TwoHosts::new();
        hosts
            .fabric
            .register_service(ServiceRecord::new(SERVICE, gid(PEER)));
        let device = hosts.here.open().unwrap();
        let options = EventChannel::options().ucma(Arc::clone(&device));
        let channel = options.open().unwrap();
        let id = id_in(state, &hosts, &channel);
        let errno = command(&id, device.as_ref());
        if states.contains(&state) {
            assert_eq!(errno, None, "{state:?}");
        } else {
            assert_eq!(errno, Some(libc::EINVAL), "{state:?}");
            let end = match state {
                AddrInfoQuery => Some(EventKind::AddrInfoResolved),
                RouteQuery => Some(EventKind::RouteResolved),
                _ => None,
            };
            // What was in flight still ends as it would have.
            let next = channel.next_event(SECOND).ok().map(|event| event.kind());
            assert_eq!(next, end, "{state:?}");
        }
    }
}

#[test]
fn binding_is_for_ids_that_are_not_bound() {
    only_in(&[Idle], |id, _| of(id.bind(IbAddr::new(gid(GID)))));
}

#[test]
fn an_address_is_resolved_before_anything_else_is() {
    let to = IbAddr::new(gid(PEER));
    let states = [Idle, BoundToNothing, Bound];
    only_in(&states, |id, _| of(id.resolve_addr(None, to, SECOND)));
}

#[test]
fn a_route_follows_an_address_or_a_service() {
    let states = [AddrResolved, AddrInfoResolved];
    only_in(&states, |id, _| of(id.resolve_route(SECOND)));
}

#[test]
fn a_service_is_looked_for_from_a_port() {
    // Without the library, which allows no second question by itself. The only id
    // of a host has the number 0.
    let request = ResolveIbService::new(0, IbService::with_id(SERVICE));
    only_in(&[Bound], |_, device| {
        let asked = transact(device, &request, &mut NoResponse, Attachment::None);
        asked.err().and_then(|error| error.raw_os_error())
    });
}

#[test]
fn an_ib_path_is_set_after_the_address_is_resolved() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = id_in(RouteResolved, &hosts, &channel);
    let path: PathData = id.path_records().unwrap()[0];
    only_in(&[AddrResolved], |id, _| of(id.set_ib_path(&[path])));
}
