//! The first process of a test guest.

fn main() {}
