//! Peers that carry byte streams: of this library, or of TCP.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rdmacm::{Incoming, Result, StreamOptions};

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// Returns every byte of a stream, some time after it has arrived.
pub(super) fn echo(incoming: Incoming, late: Duration) -> Result<()> {
    let stream = incoming.accept_stream(StreamOptions::new())?;
    report(return_bytes(&stream, late));
    Ok(())
}

/// Reads what a stream announces, and replies.
pub(super) fn sink(incoming: Incoming) -> Result<()> {
    let stream = incoming.accept_stream(StreamOptions::new())?;
    report(read_announced(&stream));
    Ok(())
}

/// The same as [`echo`] by TCP.
pub(super) fn echo_tcp(address: IpAddr) -> anyhow::Result<()> {
    serve_tcp(address, |stream| return_bytes(stream, Duration::ZERO))
}

/// The same as [`sink`] by TCP.
pub(super) fn sink_tcp(address: IpAddr) -> anyhow::Result<()> {
    serve_tcp(address, |stream| read_announced(stream))
}

/// Serves each connection on a thread of its own.
fn serve_tcp(
    address: IpAddr,
    serve_one: impl Fn(&TcpStream) -> io::Result<()> + Sync,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind((address, 0))?;
    println!("{}", listener.local_addr()?.port());
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let serve_one = &serve_one;
            scope.spawn(move || {
                let served = stream.and_then(|stream| {
                    stream.set_nodelay(true)?;
                    serve_one(&stream)
                });
                report(served);
            });
        }
    });
    Ok(())
}

fn report(served: io::Result<()>) {
    if let Err(error) = served {
        eprintln!("{error}");
    }
}

fn return_bytes(mut stream: impl Read + Write, late: Duration) -> io::Result<()> {
    let mut bytes = vec![0; CHUNK];
    loop {
        let length = stream.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        if !late.is_zero() {
            thread::sleep(late);
        }
        stream.write_all(&bytes[..length])?;
    }
}

/// A client announces with eight bytes how many follow; the reply is one byte once they have
/// arrived. Ends with the stream.
fn read_announced(mut stream: impl Read + Write) -> io::Result<()> {
    let mut bytes = vec![0; CHUNK];
    let mut announced = [0; 8];
    while stream.read(&mut announced[..1])? > 0 {
        stream.read_exact(&mut announced[1..])?;
        let mut left = u64::from_le_bytes(announced);
        while left > 0 {
            let most = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
            match stream.read(&mut bytes[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => left -= length as u64,
            }
        }
        stream.write_all(&[1])?;
    }
    Ok(())
}
