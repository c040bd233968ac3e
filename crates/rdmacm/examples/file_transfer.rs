//! Sends a file with two buffers, of which one is sent while the other is read:
//! `file_transfer 10.1.0.7:7471 FROM TO`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::thread;
use std::time::Duration;

use rdmacm::verbs::Buffer;
use rdmacm::{CLOSE_DEADLINE, Connector, Listener, MessageOptions, Transfer};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
const CHUNK: usize = 64 * 1024;

fn main() -> Result {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [address, from, to] = &*arguments else {
        return Err("usage: file_transfer ADDRESS FROM TO".into());
    };
    let listener = Listener::bind(address)?;
    let connector = Connector::new(listener.local_addr()).deadline(Duration::from_secs(5));
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&listener, to));
        send(connector, from)?;
        let received = receiving.join().map_err(|_| "the receiver panicked")??;
        println!("{received} bytes");
        Ok(())
    })
}

fn send(connector: Connector, path: &str) -> Result {
    let (mut file, connection) = (File::open(path)?, connector.connect()?);
    let mut in_flight: Option<Transfer<'_, Buffer>> = None;
    let mut buffer = connection.allocate(CHUNK)?;
    let mut spare = Some(connection.allocate(CHUNK)?);
    loop {
        let length = read_chunk(&mut file, &mut buffer)?;
        if length < CHUNK {
            for bytes in buffer.get(..length).unwrap_or_default().chunks(4096) {
                connection.send(bytes)?;
            }
            return Ok(connection.close(CLOSE_DEADLINE)?);
        }
        let previous = in_flight.replace(connection.start_send(buffer)?);
        let sent = previous.map(Transfer::wait).transpose()?;
        buffer = sent.or(spare.take()).ok_or("no buffer")?;
    }
}

/// Reads until the chunk is full or the file ends.
fn read_chunk(file: &mut File, mut chunk: &mut [u8]) -> Result<usize> {
    Ok(usize::try_from(io::copy(
        &mut file.take(chunk.len() as u64),
        &mut chunk,
    )?)?)
}

fn receive(listener: &Listener, path: &str) -> Result<u64> {
    let mut file = File::create(path)?;
    let incoming = listener.accept(Duration::from_secs(5))?;
    let connection = incoming.accept_messages(MessageOptions::new().size(CHUNK))?;
    while let Some(bytes) = connection.receive()? {
        file.write_all(&bytes)?;
    }
    Ok(file.metadata()?.len())
}
