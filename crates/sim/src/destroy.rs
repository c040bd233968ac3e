//! The end of ids, files and devices.

use rdmacm_abi::EventNumber;

use crate::host_state::EventDetails;
use crate::id::{CmObject, IdKey, State};
use crate::sim_state::SimState;
use crate::{cm, iwarp};

/// Destroys an id with its connection, its groups and its unread events; returns how
/// many of its events were read (`ucma_destroy_private_ctx`).
pub(crate) fn id(state: &mut SimState, key: IdKey) -> u32 {
    connection(state, key);
    let Some(host) = state.hosts.get_mut(key.host) else {
        return 0;
    };
    let Some(id) = host.ids.remove(&key.number) else {
        return 0;
    };
    host.groups.retain(|_, group| group.id != key.number);
    let removed = match host.files.get_mut(&id.file) {
        Some(file) => file.remove(|event| event.id == key.number),
        None => Vec::new(),
    };
    // Nobody will ever know of the ids of unread connect requests.
    for child in removed.iter().filter_map(|event| event.child) {
        destroy_number(state, key.host, child);
    }
    id.events_reported
}

fn destroy_number(state: &mut SimState, host: usize, number: u32) {
    let found = state.hosts.get(host).and_then(|host| host.ids.get(&number));
    if let Some(serial) = found.map(|id| id.serial) {
        let key = IdKey {
            host,
            number,
            serial,
        };
        id(state, key);
    }
}

/// Ends the connection of an id (`_destroy_id`).
fn connection(state: &mut SimState, key: IdKey) {
    let Some(id) = state.id(key) else {
        return;
    };
    match &id.cm {
        CmObject::None => {}
        CmObject::Listener => id.cm = CmObject::None,
        CmObject::Ib(_) => cm::destroy(state, key),
        CmObject::Iw(_) => iwarp::destroy(state, key),
    }
}

/// Closes a file and destroys its ids in the order of their creation. Unlike the
/// kernel it does not wait for the peers of iWARP connections, nor for the subnet administrator.
pub(crate) fn file(state: &mut SimState, host: usize, file: u64) {
    loop {
        let Some(host_state) = state.hosts.get(host) else {
            return;
        };
        let own = host_state.ids.iter().filter(|(_, id)| id.file == file);
        let first = own.min_by_key(|(_, id)| id.serial);
        let Some((number, _)) = first else {
            break;
        };
        let number = *number;
        destroy_number(state, host, number);
    }
    if let Some(host) = state.hosts.get_mut(host) {
        host.files.remove(&file);
    }
}

/// Removes a device: its ids report it, release their ports, and know no command but `DESTROY_ID`
/// from then on (`cma_process_remove`, `ucma_close_id`).
pub(crate) fn device(state: &mut SimState, host: usize, index: usize) {
    let Some(host_state) = state.hosts.get(host) else {
        return;
    };
    let is_attached =
        |id: &crate::id::Id| id.attached.is_some_and(|attached| attached.device == index);
    let ids: Vec<_> = host_state
        .ids
        .iter()
        .filter(|(_, id)| is_attached(id))
        .map(|(number, id)| IdKey {
            host,
            number: *number,
            serial: id.serial,
        })
        .collect();
    for key in ids {
        if let Some(id) = state.id(key) {
            id.state = State::DeviceRemoval;
        }
        state.post(key, EventNumber::DEVICE_REMOVAL, EventDetails::NONE);
        connection(state, key);
        if let Some(id) = state.id(key) {
            id.bound = None;
        }
    }
    // What the connections have sent leaves first.
    state.run_due();
    if let Some(device) = state
        .hosts
        .get_mut(host)
        .and_then(|host| host.devices.get_mut(index))
    {
        device.verbs.remove();
        device.is_removed = true;
    }
}
