//! Programs that speak TCP, over RDMA: a proxy beside each of them.
//!
//! ```text
//! server$ tcp_proxy from-rdma 10.1.0.7:7471 127.0.0.1:80
//! client$ tcp_proxy to-rdma 127.0.0.1:8080 10.1.0.7:7471
//! client$ curl http://127.0.0.1:8080/
//! ```
//!
//! The end of each direction is passed on, and a connection that fails on one side is reset on the
//! other.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::future::{Future, ready};
use std::io;
use std::net::SocketAddr;

use rdmacm::tokio::{RdmaListener, RdmaStream};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [direction, listen, peer] = arguments.as_slice() else {
        return Err("usage: tcp_proxy to-rdma|from-rdma LISTEN PEER".into());
    };
    let peer: SocketAddr = peer.parse()?;
    match direction.as_str() {
        "to-rdma" => {
            let listener = TcpListener::bind(listen).await?;
            println!("listening on {}", listener.local_addr()?);
            loop {
                let (stream, from) = listener.accept().await?;
                tokio::spawn(forward(from, ready(Ok(stream)), RdmaStream::connect(peer)));
            }
        }
        "from-rdma" => {
            let listener = RdmaListener::bind(listen.parse::<SocketAddr>()?)?;
            println!("listening on {}", listener.local_addr()?);
            loop {
                match listener.accept().await {
                    Ok((stream, from)) => {
                        tokio::spawn(forward(from, TcpStream::connect(peer), ready(Ok(stream))));
                    }
                    // There is no stream with this peer. Mostly others come.
                    Err(error) => match rdmacm::Error::from_io(&error) {
                        Some(ended) if ended.ends_listener() => return Err(error.into()),
                        _ => println!("{error}"),
                    },
                }
            }
        }
        _ => Err("a direction is to-rdma or from-rdma".into()),
    }
}

/// Copies both directions until both have ended.
async fn forward(
    from: SocketAddr,
    tcp: impl Future<Output = io::Result<TcpStream>>,
    rdma: impl Future<Output = io::Result<RdmaStream>>,
) {
    let (mut tcp, mut rdma) = tokio::join!(tcp, rdma);
    let copied = match (&mut tcp, &mut rdma) {
        (Ok(tcp), Ok(rdma)) => copy_bidirectional(tcp, rdma)
            .await
            .map_err(|e| e.to_string()),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    };
    match copied {
        Ok((there, back)) => println!("{from}: {there} bytes to RDMA, {back} bytes to TCP"),
        Err(error) => {
            println!("{from}: {error}");
            // Otherwise what has arrived would look complete.
            let _ = tcp.map(|tcp| tcp.set_zero_linger());
            let _ = rdma.map(RdmaStream::abort);
        }
    }
}
