//! Deadlines and tasks are on time while a node reads more and more connect requests.
#![cfg(test)]

mod failing;
mod flooded;
mod ownerless;
mod reactor;
mod ucma_file;
