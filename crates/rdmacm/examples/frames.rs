//! Requests and replies in frames that begin with their length, on a byte stream: `frames
//! 10.1.0.7:7471`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use rdmacm::tokio::{RdmaListener, RdmaStream};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: frames ADDRESS")?;
    let address: SocketAddr = address.parse()?;
    let server = tokio::spawn(serve(RdmaListener::bind(address)?));

    let mut frames = framed(RdmaStream::connect(address).await?);
    // All requests are in flight before the first reply is read.
    for request in ["one", "twenty-two", "three hundred and thirty-three"] {
        frames.send(Bytes::from(request)).await?;
    }
    for _ in 0..3 {
        let reply = frames.next().await.ok_or("the server has closed")??;
        println!("{}", String::from_utf8_lossy(&reply));
    }
    drop(frames);
    println!("{} requests", server.await??);
    Ok(())
}

/// Replies to one client with the number of bytes of each request.
async fn serve(listener: RdmaListener) -> io::Result<usize> {
    let (stream, _) = listener.accept().await?;
    let mut frames = framed(stream);
    let mut count = 0;
    while let Some(request) = frames.next().await {
        let reply = format!("{} bytes", request?.len());
        frames.send(Bytes::from(reply)).await?;
        count += 1;
    }
    Ok(count)
}

/// Each frame has at most 1 MiB, so that a peer cannot ask for more memory.
fn framed(stream: RdmaStream) -> Framed<RdmaStream, LengthDelimitedCodec> {
    let codec = LengthDelimitedCodec::builder();
    Framed::new(stream, { codec }.max_frame_length(1 << 20).new_codec())
}
