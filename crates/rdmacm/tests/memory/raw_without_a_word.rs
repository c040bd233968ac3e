//! error: call to unsafe function `Piece::raw` is unsafe
//! error: call to unsafe function `ProtectionDomain::register_raw` is unsafe

use rdmacm::core::AccessFlags;
use rdmacm::verbs::{Piece, ProtectionDomain, RawRegion};

fn piece(address: u64, key: u32) -> Piece {
    Piece::raw(address, 8, key)
}

fn region(domain: &ProtectionDomain, address: u64) -> Option<RawRegion> {
    domain
        .register_raw(address, 8, AccessFlags::LOCAL_WRITE)
        .ok()
}

fn main() {
    let _ = (piece, region);
}
