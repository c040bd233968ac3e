//! error: the trait `Provider` requires an `unsafe impl` declaration

use rdmacm::verbs::provider::Provider;

#[derive(Debug)]
struct Mine;

impl Provider for Mine {}

fn main() {
    let _ = Mine;
}
