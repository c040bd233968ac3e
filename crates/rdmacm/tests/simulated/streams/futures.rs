//! The readers and writers of futures.

use std::future::poll_fn;
use std::io::{ErrorKind, Result};
use std::pin::Pin;

use futures_io::{AsyncRead, AsyncWrite};
use rdmacm_sim::Fabric;

use super::bytes;
use super::tasks::Tasks;

async fn write(stream: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes));
        bytes = &bytes[written.await?..];
    }
    poll_fn(|context| Pin::new(&mut *stream).poll_flush(context)).await?;
    poll_fn(|context| Pin::new(&mut *stream).poll_close(context)).await
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>> {
    let mut received = Vec::new();
    loop {
        let mut into = [0; 100];
        let read = poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut into));
        match read.await? {
            0 => return Ok(received),
            length => received.extend_from_slice(&into[..length]),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_arrive_until_the_end() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let (mut client, mut server) = tasks.connect().await;
    let bytes = bytes(5000);
    let (written, received) = tokio::join!(write(&mut client, &bytes), read(&mut server));
    written.unwrap();
    assert!(received.unwrap() == bytes);
}

/// What was written before has perhaps not arrived.
#[tokio::test(start_paused = true)]
async fn closing_reports_a_failure() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let (_client, mut server) = tasks.connect().await;
    tasks.server.remove_device("rxe0");
    server.readable().await.unwrap();
    let closed = poll_fn(|context| Pin::new(&mut server).poll_close(context)).await;
    assert_eq!(closed.unwrap_err().kind(), ErrorKind::NotConnected);
}
