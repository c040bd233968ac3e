//! Programs that speak TCP, over RDMA: a proxy beside each of them.
//!
//! ```text
//! server$ tcp_proxy from-rdma 10.1.0.7:7471 127.0.0.1:80
//! client$ tcp_proxy to-rdma 127.0.0.1:8080 10.1.0.7:7471
//! client$ curl http://127.0.0.1:8080/
//! ```
//!
//! The end of each direction is passed on. A connection that fails on one side ends on the other one
//! as if it were complete: forward protocols that know how much is to come.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;

use rdmacm::tokio::{RdmaListener, RdmaStream};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
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
                match listener.accept().await {
                    Ok((stream, from)) => {
                        tokio::spawn(forward(stream, from, RdmaStream::connect(peer)));
                    }
                    // Such as too many open files, until some connections have ended.
                    Err(error) => {
                        println!("{error}");
                        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    }
                }
            }
        }
        "from-rdma" => {
            let listener = RdmaListener::bind(listen.parse::<SocketAddr>()?)?;
            println!("listening on {}", listener.local_addr()?);
            loop {
                match listener.accept().await {
                    Ok((stream, from)) => {
                        tokio::spawn(forward(stream, from, TcpStream::connect(peer)));
                    }
                    Err(error) if ends_listener(&error) => return Err(error.into()),
                    // One peer could not be accepted. The listener goes on.
                    Err(error) => println!("{error}"),
                }
            }
        }
        _ => Err("a direction is to-rdma or from-rdma".into()),
    }
}

fn ends_listener(error: &io::Error) -> bool {
    rdmacm::Error::from_io(error).is_some_and(rdmacm::Error::ends_listener)
}

/// Copies both directions until both have ended.
async fn forward<T: AsyncRead + AsyncWrite + Unpin>(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    from: SocketAddr,
    peer: impl Future<Output = io::Result<T>>,
) {
    let copied = async { copy_bidirectional(&mut stream, &mut peer.await?).await };
    match copied.await {
        Ok((there, back)) => println!("{from}: {there} bytes there, {back} bytes back"),
        Err(error) => println!("{from}: {error}"),
    }
}
