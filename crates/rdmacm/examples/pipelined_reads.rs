//! Many reads in flight at a time: `pipelined_reads 10.1.0.7:7471`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::thread;
use std::time::Duration;

use rdmacm::core::AccessFlags;
use rdmacm::verbs::RemoteMemory;
use rdmacm::{CLOSE_DEADLINE, Connection, Connector, Listener};

const CHUNK: u64 = 4096;
const CHUNKS: u64 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args()
        .nth(1)
        .ok_or("usage: pipelined_reads ADDRESS")?;
    let listener = Listener::bind(&*address)?;
    let connector = Connector::new(listener.local_addr()).deadline(Duration::from_secs(5));
    thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&listener));
        let connection = connector.connect()?;
        println!("{} bytes", read_all(&connection)?);
        connection.close(CLOSE_DEADLINE)?;
        Ok(serving.join().map_err(|_| "the server panicked")??)
    })
}

fn serve(listener: &Listener) -> rdmacm::Result<()> {
    let connection = listener.accept(Duration::from_secs(5))?.accept()?;
    let length = usize::try_from(CHUNK * CHUNKS).unwrap_or(usize::MAX);
    let memory = connection.expose(length, AccessFlags::REMOTE_READ)?;
    memory.write(0, &vec![7; length]);
    // On iWARP the client sends first.
    connection.receive()?;
    connection.send(&memory.remote().to_bytes())?;
    connection.receive().map(drop)
}

fn read_all(connection: &Connection) -> Result<usize, Box<dyn Error>> {
    connection.send(b"memory?")?;
    let description = connection.receive()?.ok_or("the server has closed")?;
    let memory = RemoteMemory::from_bytes(&description).ok_or("no description")?;
    let mut reads = Vec::new();
    for start in (0..memory.len()).step_by(CHUNK.try_into()?) {
        let buffer = connection.allocate(CHUNK.try_into()?)?;
        let part = memory.slice(start..start + CHUNK).ok_or("too short")?;
        // Waits only while as many requests are in flight as the options allow.
        reads.push(connection.start_read(buffer, part)?);
    }
    let mut bytes = 0;
    for read in reads {
        bytes += read.wait()?.len();
    }
    Ok(bytes)
}
