//! error: use of moved value: `buffer`

use rdmacm::Connection;
use rdmacm::verbs::{Buffer, RemoteMemory};

fn read(connection: &Connection, buffer: Buffer, remote: RemoteMemory) {
    drop(connection.read(buffer, remote));
    drop(buffer);
}

fn main() {
    let _ = read;
}
