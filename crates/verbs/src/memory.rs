//! Memory that the device may use.

mod buffer;
mod exposed;
mod heap;
mod pages;
mod piece;
mod region;
mod remote;
#[cfg(test)]
mod tests;

pub use buffer::Buffer;
pub use exposed::ExposedMemory;
pub use piece::{Piece, Pieces};
pub use region::RawRegion;
pub use remote::RemoteMemory;
