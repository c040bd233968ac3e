//! A cache of address handles.

use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use rdmacm_core::{AhAttr, Gid, IdHandle, Transport};
use rdmacm_verbs::{AddressHandle, ProtectionDomain};

use crate::attempt::Attempt;
use crate::bounded_map::BoundedMap;
use crate::error::Cause;
use crate::neighbours::{NeighbourLookup, NeighbourPath};

/// The limit of handles in the cache.
const MAX_HANDLES: usize = 256;

/// After this time a handle is made again: an address may have moved from this host or to it, and
/// rxe decides by the link-layer address in the handle whether a datagram leaves the host.
const MAX_AGE: Duration = Duration::from_secs(60);
/// When the neighbour of an older one is looked up again after a caller's deadline has ended that.
const RETRY: Duration = Duration::from_secs(5);

/// The fields of an address, without padding.
type Key = ([u8; 16], u32, [u8; 8], u16);

/// Address handles by the attributes that they were created with.
#[derive(Debug, Default)]
pub(super) struct AddressHandles(Mutex<Cache>);

/// The handles, and when they were made.
type Cache = BoundedMap<Key, (AddressHandle, Instant), MAX_HANDLES>;

impl AddressHandles {
    /// The handle for these attributes, for the socket with this id.
    pub(super) async fn get(
        &self,
        attempt: &Attempt,
        domain: &ProtectionDomain,
        id: &IdHandle,
        attr: AhAttr,
    ) -> Result<AddressHandle, Cause> {
        let key = key(&attr);
        let now = attempt.event_loop.now();
        let former = self.handles().get(&key).cloned();
        if let Some((handle, made)) = &former {
            if now.saturating_duration_since(*made) < MAX_AGE {
                return Ok(handle.clone());
            }
        }
        if domain.context().transport() == Transport::RoCE {
            let path = NeighbourPath {
                gid: Gid(attr.grh.destination_gid),
                port: attr.port_number,
                source_gid_index: attr.grh.source_gid_index,
            };
            if let Some(lookup) = NeighbourLookup::begin(&attempt.event_loop, id, &path) {
                match (lookup.finish(attempt).await, former) {
                    (Ok(()), _) => {}
                    // A host that is silent for a moment is sent to as before.
                    (Err(Cause::Event(_)), Some((handle, _))) => {
                        return Ok(self.keep(key, handle, now));
                    }
                    // The caller's time was too short to know: asked again soon.
                    (Err(_), Some((handle, _))) => {
                        let soon = now
                            .checked_sub(MAX_AGE.saturating_sub(RETRY))
                            .unwrap_or(now);
                        return Ok(self.keep(key, handle, soon));
                    }
                    (Err(cause), None) => return Err(cause),
                }
            }
        }
        let handle = domain.create_address_handle(attr).map_err(Cause::device)?;
        Ok(self.keep(key, handle, now))
    }

    fn keep(&self, key: Key, handle: AddressHandle, now: Instant) -> AddressHandle {
        let evicted = self.handles().insert(key, (handle.clone(), now));
        // Without the lock: destroying the last reference is a system call.
        drop(evicted);
        handle
    }

    fn handles(&self) -> MutexGuard<'_, Cache> {
        self.0.lock()
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
