//! Address handles, kept for the next datagram the same way.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdmacm_core::AhAttr;
use rdmacm_verbs::{AddressHandle, ProtectionDomain};

use crate::error::Cause;
use crate::hub::elsewhere;
use crate::steps::Attempt;

/// How many are kept. A peer chooses its own address, so that a socket that answers
/// whoever sends would otherwise keep any number.
const KEPT: usize = 256;

type Kept = HashMap<Key, AddressHandle>;
/// An address by its meaning: padding is nobody's.
type Key = ([u8; 16], u32, [u8; 8], u16);

/// Address handles by what they were made from.
#[derive(Debug, Default)]
pub(super) struct AddressHandles(Mutex<Kept>);

impl AddressHandles {
    /// The handle for these attributes. The kernel may look for the neighbour meanwhile,
    /// for up to a second, so a new one is made elsewhere.
    pub(super) async fn get(
        &self,
        attempt: &Attempt,
        domain: &ProtectionDomain,
        attr: AhAttr,
    ) -> Result<AddressHandle, Cause> {
        let key = key(&attr);
        if let Some(handle) = self.kept().get(&key) {
            return Ok(handle.clone());
        }
        let domain = domain.clone();
        let create = move || domain.create_address_handle(attr);
        let created = elsewhere(&attempt.hub, attempt.until, create).await;
        let handle = created.ok_or(Cause::Deadline)??;
        let forgotten = self.keep(key, handle.clone());
        drop(forgotten);
        Ok(handle)
    }

    /// What is kept no more goes to the caller: the last to have a handle asks the kernel.
    fn keep(&self, key: Key, handle: AddressHandle) -> Kept {
        let mut kept = self.kept();
        let forgotten = if kept.len() < KEPT {
            Kept::new()
        } else {
            std::mem::take(&mut *kept)
        };
        kept.insert(key, handle);
        forgotten
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
