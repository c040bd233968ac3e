//! error: cannot initialize a tuple struct which contains private fields

use rdmacm::verbs::{Buffer, Sge};

fn longer(buffer: Buffer) -> Sge {
    let length = 2 * buffer.len() as u32;
    Sge((buffer, 0, length))
}

fn main() {
    let _ = longer;
}
