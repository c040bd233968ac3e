//! Reading bytes where they have arrived, from memory that is smaller than what arrives.
#![expect(unsafe_code, reason = "the peers are this process's own")]

use std::io::{BufRead as _, Write as _};
use std::net::Shutdown;
use std::thread;

use rdmacm::tokio::{InPlaceReader, RdmaStream};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

use super::tasks::Tasks;
use super::{Hosts, bytes};

/// The reader, and the half that writes.
fn in_place(stream: RdmaStream) -> (InPlaceReader, rdmacm::tokio::OwnedWriteHalf) {
    let (read, write) = stream.into_split();
    // SAFETY: the peer is of this library, in this process.
    (unsafe { read.in_place() }, write)
}

#[test]
fn threads_read_until_the_end() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        let (read, _write) = server.into_split();
        // SAFETY: the peer is of this library, in this process.
        let mut reader = unsafe { read.in_place() };
        thread::scope(|scope| {
            scope.spawn(|| {
                (&client).write_all(&bytes(10_000)).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
            });
            let mut received = Vec::new();
            loop {
                let part = reader.fill_buf().unwrap();
                let some = part.len().min(77);
                received.extend_from_slice(&part[..some]);
                if some == 0 {
                    break;
                }
                reader.consume(some);
            }
            assert!(received == bytes(10_000));
        });
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_read_lines_with_tokio() {
    for tasks in Tasks::each() {
        let (mut client, server) = tasks.connect().await;
        let (mut reader, _write) = in_place(server);
        let writing = async {
            for number in 0..200 {
                let line = format!("line {number}\n");
                client.write_all(line.as_bytes()).await.unwrap();
            }
            client.write_all(b"end").await.unwrap();
            client.shutdown().await.unwrap();
        };
        let reading = async {
            for number in 0..200 {
                let mut line = String::new();
                reader.read_line(&mut line).await.unwrap();
                assert_eq!(line, format!("line {number}\n"));
            }
            let mut end = String::new();
            reader.read_to_string(&mut end).await.unwrap();
            assert_eq!(end, "end");
        };
        tokio::join!(writing, reading);
    }
}

/// What was looked at and not consumed is read next, by the half and by the stream.
#[tokio::test(start_paused = true)]
async fn the_half_reads_on_where_the_reader_was() {
    for tasks in Tasks::each() {
        let (mut client, server) = tasks.connect().await;
        let (mut reader, write) = in_place(server);
        client.write_all(b"first\nthe rest").await.unwrap();
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        assert_eq!(line, "first\n");
        assert_eq!(reader.fill_buf().await.unwrap(), b"the rest");
        reader.consume(4);
        let mut stream = reader.into_half().reunite(write).unwrap();
        let mut rest = [0; 4];
        stream.read_exact(&mut rest).await.unwrap();
        assert_eq!(rest, *b"rest");
    }
}

#[cfg(feature = "futures-io")]
#[tokio::test(start_paused = true)]
async fn tasks_read_until_the_end_with_futures() {
    use futures_io::AsyncBufRead;

    for tasks in Tasks::each() {
        let (mut client, server) = tasks.connect().await;
        let (mut reader, _write) = in_place(server);
        let writing = async {
            client.write_all(&bytes(10_000)).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let reading = async {
            let mut received = Vec::new();
            loop {
                let fill = std::future::poll_fn(|context| {
                    let filled = std::pin::Pin::new(&mut reader);
                    AsyncBufRead::poll_fill_buf(filled, context).map_ok(<[u8]>::to_vec)
                });
                let part = fill.await.unwrap();
                let some = part.len().min(77);
                received.extend_from_slice(&part[..some]);
                if some == 0 {
                    return received;
                }
                AsyncBufRead::consume(std::pin::Pin::new(&mut reader), some);
            }
        };
        let (received, ()) = tokio::join!(reading, writing);
        assert!(received == bytes(10_000));
    }
}
