//! Kernels, virtual machines, tests and checks of this repository.

fn main() {}
