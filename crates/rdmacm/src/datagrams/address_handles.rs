//! A cache of address handles.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdmacm_core::AhAttr;
use rdmacm_verbs::{AddressHandle, ProtectionDomain};

use super::newest::Newest;
use crate::connect::Attempt;
use crate::error::Cause;
use crate::event_loop::spawn_blocking;
use crate::messages::device_error;

/// The limit of handles in the cache.
const MAX_HANDLES: usize = 256;

/// The fields of an address, without padding.
type Key = ([u8; 16], u32, [u8; 8], u16);

/// Address handles by the attributes that they were created with.
#[derive(Debug, Default)]
pub(super) struct AddressHandles(Mutex<Newest<Key, AddressHandle, MAX_HANDLES>>);

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
        if let Some(handle) = self.handles().get(&key) {
            return Ok(handle.clone());
        }
        let domain = domain.clone();
        let create = move || domain.create_address_handle(attr);
        let created = spawn_blocking(&attempt.event_loop, attempt.until, create).await?;
        let handle = created.ok_or_else(no_result)?.map_err(device_error)?;
        let evicted = self.handles().insert(key, handle.clone());
        // Without the lock: destroying the last reference is a system call.
        drop(evicted);
        Ok(handle)
    }

    fn handles(&self) -> MutexGuard<'_, Newest<Key, AddressHandle, MAX_HANDLES>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of an executor that drops its tasks, as one that shuts down.
fn no_result() -> Cause {
    let error = io::Error::other("the executor has not created the address handle");
    Cause::Device { error, errno: None }
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
