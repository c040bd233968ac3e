//! A table that clients read without the server's program: `key_value 10.1.0.7:7471`.
//!
//! The server exposes the table before it accepts a client, and describes it in the first
//! message. The client reads single entries.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::thread;
use std::time::Duration;

use rdmacm::core::AccessFlags;
use rdmacm::verbs::RemoteMemory;
use rdmacm::{CLOSE_DEADLINE, Connection, Connector, Listener, MessageOptions};

type Result = std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;
const ENTRIES: u64 = 64;
const ENTRY: u64 = 8;

fn main() -> Result {
    let address = std::env::args().nth(1).ok_or("usage: key_value ADDRESS")?;
    let listener = Listener::bind(&*address)?;
    let connector = Connector::new(listener.local_addr()).deadline(Duration::from_secs(5));
    thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&listener));
        let connection = connector.connect()?;
        look_up(&connection, &[3, 17, 63])?;
        connection.close(CLOSE_DEADLINE)?;
        serving.join().map_err(|_| "the server panicked")?
    })
}

fn serve(listener: &Listener) -> Result {
    let incoming = listener.accept(Duration::from_secs(5))?;
    let domain = incoming.protection_domain()?;
    let table = domain.expose(512, AccessFlags::REMOTE_READ)?;
    for (key, at) in (0..ENTRIES).zip((0..512).step_by(8)) {
        table.write(at, &(key * key).to_be_bytes());
    }
    let options = MessageOptions::new().protection_domain(&domain);
    let connection = incoming.accept_messages(options)?;
    // On iWARP the client sends first.
    connection.receive()?;
    connection.send(&table.remote().to_bytes())?;
    connection.receive()?;
    Ok(())
}

fn look_up(connection: &Connection, keys: &[u64]) -> Result {
    connection.send(b"table?")?;
    let description = connection.receive()?.ok_or("the server has closed")?;
    let table = RemoteMemory::from_bytes(&description).ok_or("no description")?;
    let mut buffer = connection.allocate(8)?;
    for key in keys {
        let range = key * ENTRY..(key + 1) * ENTRY;
        let entry = table.slice(range).ok_or("no such key")?;
        buffer = connection.read(buffer, entry)?;
        println!("{key}: {}", u64::from_be_bytes((*buffer).try_into()?));
    }
    Ok(())
}
