//! Memory that the device may use.

mod buffer;
mod heap;
mod pages;
mod region;
mod remote;
mod remote_access_region;
mod sge;
#[cfg(test)]
mod tests;

pub use buffer::Buffer;
pub(crate) use region::Memory;
pub use region::RawRegion;
pub use remote::RemoteMemory;
pub use remote_access_region::RemoteAccessRegion;
pub use sge::{SgList, Sge};
