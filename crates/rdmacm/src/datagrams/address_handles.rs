//! A cache of address handles.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdmacm_core::AhAttr;
use rdmacm_verbs::{AddressHandle, ProtectionDomain};

use crate::connect::Attempt;
use crate::error::Cause;
use crate::event_loop::spawn_blocking;
use crate::messages::device_error;

/// The limit of handles in the cache. Peers choose their own addresses, so a socket that
/// replies to any sender would cache any number of handles without it.
const MAX_HANDLES: usize = 256;

/// The fields of an address, without padding.
type Key = ([u8; 16], u32, [u8; 8], u16);

/// Address handles by the attributes that they were created with.
#[derive(Debug, Default)]
pub(super) struct AddressHandles(Mutex<Newest<AddressHandle>>);

/// The values of the [`MAX_HANDLES`] keys that were added last.
#[derive(Debug)]
struct Newest<V> {
    values: HashMap<Key, V>,
    /// The oldest key is the first.
    keys: VecDeque<Key>,
}

impl AddressHandles {
    /// The handle for these attributes. The kernel may resolve the neighbour for up to a
    /// second, so the blocking executor creates a new one.
    pub(super) async fn get(
        &self,
        attempt: &Attempt,
        domain: &ProtectionDomain,
        attr: AhAttr,
    ) -> Result<AddressHandle, Cause> {
        let key = key(&attr);
        if let Some(handle) = self.handles().values.get(&key) {
            return Ok(handle.clone());
        }
        let domain = domain.clone();
        let create = move || domain.create_address_handle(attr);
        let created = spawn_blocking(&attempt.event_loop, attempt.until, create).await;
        let handle = created.ok_or(Cause::Deadline)?.map_err(device_error)?;
        let evicted = self.handles().insert(key, handle.clone());
        // Without the lock: destroying the last reference is a system call.
        drop(evicted);
        Ok(handle)
    }

    fn handles(&self) -> MutexGuard<'_, Newest<AddressHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Newest<V> {
    /// Returns the value that is dropped for it: the key's, or the oldest one.
    #[must_use]
    fn insert(&mut self, key: Key, value: V) -> Option<V> {
        let replaced = self.values.insert(key, value);
        if replaced.is_some() {
            return replaced;
        }
        self.keys.push_back(key);
        if self.keys.len() <= MAX_HANDLES {
            return None;
        }
        let oldest = self.keys.pop_front()?;
        self.values.remove(&oldest)
    }
}

impl<V> Default for Newest<V> {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            keys: VecDeque::new(),
        }
    }
}

fn key(attr: &AhAttr) -> Key {
    let grh = &attr.grh;
    let numbers = [
        grh.source_gid_index,
        grh.hop_limit,
        grh.traffic_class,
        attr.service_level,
        attr.source_path_bits,
        attr.static_rate,
        attr.is_global,
        attr.port_number,
    ];
    (
        grh.destination_gid,
        grh.flow_label,
        numbers,
        attr.destination_lid,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        ([0; 16], number, [0; 8], 0)
    }

    #[test]
    fn the_oldest_handle_is_dropped_for_a_new_one() {
        let mut newest = Newest::default();
        for number in (0..MAX_HANDLES).map_while(|number| u32::try_from(number).ok()) {
            assert_eq!(newest.insert(key(number), number), None);
        }
        assert_eq!(newest.insert(key(7), 1000), Some(7));
        assert_eq!(newest.insert(key(2000), 2000), Some(0));
        assert_eq!(newest.values.len(), MAX_HANDLES);
        assert_eq!(newest.values.get(&key(7)), Some(&1000));
    }
}
