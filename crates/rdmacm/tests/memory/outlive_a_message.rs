//! error: cannot return value referencing local variable `message`

use rdmacm::Connection;

fn bytes(connection: &Connection) -> Option<&[u8]> {
    let message = connection.receive().ok()??;
    Some(&message[..])
}

fn main() {
    let _ = bytes;
}
