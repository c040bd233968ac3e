//! error: cannot construct `Sge` with struct literal syntax due to private fields

use rdmacm::verbs::{Buffer, Sge};

fn longer(buffer: &Buffer) -> Sge {
    Sge {
        range: 0..2 * buffer.len(),
    }
}

fn main() {
    let _ = longer;
}
