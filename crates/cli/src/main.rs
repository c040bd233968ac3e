//! The rdmacm command: resolve, list devices.

fn main() {}
