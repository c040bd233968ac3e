//! error: call to unsafe function `Sge::raw` is unsafe
//! error: call to unsafe function `ProtectionDomain::register_raw` is unsafe

use rdmacm::core::AccessFlags;
use rdmacm::verbs::{Sge, ProtectionDomain, RawRegion};

fn sge(address: u64, key: u32) -> Sge {
    Sge::raw(address, 8, key)
}

fn region(domain: &ProtectionDomain, address: u64) -> Option<RawRegion> {
    domain
        .register_raw(address, 8, AccessFlags::LOCAL_WRITE)
        .ok()
}

fn main() {
    let _ = (sge, region);
}
