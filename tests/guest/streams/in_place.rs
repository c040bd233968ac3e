//! Reading bytes where they have arrived.
#![expect(unsafe_code, reason = "the peers are this process's own")]

use std::io::{BufRead, Read, Write};
use std::thread;

use rdmacm::{OwnedWriteHalf, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

use super::tasks::pair;
use super::{Pair, bytes};
use crate::connector::asynchronous::on_one_thread;

fn in_place(stream: RdmaStream) -> (rdmacm::InPlaceReader, OwnedWriteHalf) {
    let (read, write) = stream.into_split();
    // SAFETY: the peer is of this library, in this process.
    (unsafe { read.in_place() }, write)
}

/// More bytes than the memory has room for, in pieces that wrap around in it.
#[case]
fn bytes_are_read_where_they_are(site: &Site) {
    let options = StreamOptions::new().receive_buffer(5000);
    let Pair { client, server } = Pair::with(site, &StreamOptions::new(), &options);
    let sent = bytes(100_000);
    let (mut reader, _write) = in_place(server);
    let mut received = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            (&client).write_all(&sent).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
        });
        loop {
            let part = reader.fill_buf().unwrap();
            assert!(part.len() <= 5000);
            if part.is_empty() {
                break;
            }
            let some = part.len().min(777);
            received.extend_from_slice(&part[..some]);
            reader.consume(some);
        }
    });
    assert!(received == sent);
    assert!(reader.fill_buf().unwrap().is_empty());
}

/// The writing half is another thread's; what is left is read by the half, and by the stream.
#[case]
fn a_half_reads_on_where_its_reader_was(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    let (mut reader, mut write) = in_place(server);
    (&client).write_all(b"first\nsecond\nthe rest").unwrap();
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "first\nsecond\n");
    let mut the = [0; 4];
    reader.read_exact(&mut the).unwrap();
    write.write_all(&the).unwrap();
    let stream = reader.into_half().reunite(write).unwrap();
    let mut rest = [0; 4];
    (&stream).read_exact(&mut rest).unwrap();
    assert_eq!((&the, &rest), (b"the ", b"rest"));
    (&client).read_exact(&mut the).unwrap();
    assert_eq!(&the, b"the ");
}

#[case]
fn lines_are_read_where_they_are_on_tokio(site: &Site) {
    on_one_thread().block_on(async {
        let node = rdmacm::tokio::Node::open().unwrap();
        let options = StreamOptions::new().receive_buffer(500);
        let (mut client, server) = pair(site, &node, options).await;
        let (read, _write) = server.into_split();
        // SAFETY: the peer is of this library, in this process.
        let mut reader = unsafe { read.in_place() };
        let writing = tokio::spawn(async move {
            for number in 0..200 {
                let line = format!("line {number}\n");
                client.write_all(line.as_bytes()).await.unwrap();
            }
            client.write_all(b"end").await.unwrap();
            client.close(PATIENCE).await.unwrap();
        });
        for number in 0..200 {
            let mut line = String::new();
            reader.read_line(&mut line).await.unwrap();
            assert_eq!(line, format!("line {number}\n"));
        }
        let mut end = String::new();
        reader.read_to_string(&mut end).await.unwrap();
        assert_eq!(end, "end");
        writing.await.unwrap();
    });
}
