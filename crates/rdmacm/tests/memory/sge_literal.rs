//! error: cannot construct `Sge` with struct literal syntax due to private fields

use rdmacm::verbs::{Buffer, Sge};

fn longer(buffer: &Buffer) -> Sge {
    Sge {
        start: 0,
        length: 2 * buffer.len() as u32,
    }
}

fn main() {
    let _ = longer;
}
