//! A node is shared by what floods it and all else that goes on.
#![cfg(test)]

mod device;
mod failing;
mod flooded;
mod ownerless;
mod reactor;
