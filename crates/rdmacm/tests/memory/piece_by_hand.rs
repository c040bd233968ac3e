//! error: cannot construct `Piece` with struct literal syntax due to private fields

use rdmacm::verbs::{Buffer, Piece};

fn longer(buffer: &Buffer) -> Piece {
    Piece {
        range: 0..2 * buffer.len(),
    }
}

fn main() {
    let _ = longer;
}
