//! The halves of a stream.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm::ReuniteError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::tasks::Tasks;
use super::{Hosts, SECOND};

#[test]
fn halves_have_the_addresses_of_the_stream() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        let addresses = [client.local_addr().unwrap(), client.peer_addr().unwrap()];
        let (read, write) = client.into_split();
        let of_read = [read.local_addr().unwrap(), read.peer_addr().unwrap()];
        let of_write = [write.local_addr().unwrap(), write.peer_addr().unwrap()];
        assert_eq!((of_read, of_write), (addresses, addresses));
        assert_eq!(server.peer_addr().unwrap(), addresses[0]);
    }
}

#[test]
fn each_half_has_a_timeout() {
    for hosts in Hosts::each() {
        let (client, _server) = hosts.connect();
        let (mut read, mut write) = client.into_split();
        let zero = read.set_read_timeout(Some(Duration::ZERO)).unwrap_err();
        assert_eq!(zero.kind(), ErrorKind::InvalidInput);
        read.set_read_timeout(Some(SECOND)).unwrap();
        write.set_write_timeout(Some(2 * SECOND)).unwrap();
        assert_eq!(read.read_timeout(), Some(SECOND));
        assert_eq!(write.write_timeout(), Some(2 * SECOND));
        let error = read.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        // The peer does not read.
        let error = write.write_all(&[0; 10_000]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    }
}

#[test]
fn dropping_the_half_that_writes_is_the_end_for_the_peer() {
    for hosts in Hosts::each() {
        let (client, mut server) = hosts.connect();
        let (mut read, mut write) = client.into_split();
        write.write_all(b"question").unwrap();
        drop(write);
        let mut question = String::new();
        server.read_to_string(&mut question).unwrap();
        assert_eq!(question, "question");
        server.write_all(b"answer").unwrap();
        let mut peeked = [0; 10];
        assert_eq!(read.peek(&mut peeked).unwrap(), 6);
        drop(server);
        let mut answer = String::new();
        read.read_to_string(&mut answer).unwrap();
        assert_eq!((&peeked[..6], answer.as_str()), (&b"answer"[..], "answer"));
    }
}

#[test]
fn a_half_that_is_forgotten_is_no_end_for_the_peer() {
    for hosts in Hosts::each() {
        let (client, mut server) = hosts.connect();
        let (read, write) = client.into_split();
        write.forget();
        server.set_read_timeout(Some(SECOND)).unwrap();
        let error = server.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        drop(read);
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn halves_of_the_same_stream_are_reunited() {
    for hosts in Hosts::each() {
        let [(one, mut peer), (other, _other_peer)] = [(); 2].map(|()| hosts.connect());
        let (read, write) = one.into_split();
        let (other_read, other_write) = other.into_split();
        let error = read.reunite(other_write).unwrap_err();
        let text = "the halves are not of the same connection";
        assert_eq!(error.to_string(), text);
        let ReuniteError(read, other_write) = error;
        let mut stream = read.reunite(write).unwrap();
        stream.write_all(b"whole").unwrap();
        peer.read_exact(&mut [0; 5]).unwrap();
        other_read.reunite(other_write).unwrap();
    }
}

/// They have the descriptor of the stream to wait with.
#[test]
fn halves_of_a_nonblocking_stream_do_not_wait() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        server.set_nonblocking(true).unwrap();
        let raw = server.as_raw_fd();
        assert_eq!(raw, server.as_fd().as_raw_fd());
        let (mut read, mut write) = server.into_split();
        assert_eq!([read.as_raw_fd(), write.as_raw_fd()], [raw; 2]);
        let refused = read.read(&mut [0]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
        (&client).write_all(b"x").unwrap();
        for descriptor in [read.as_fd(), write.as_fd()] {
            let mut descriptors = [PollFd::new(descriptor, PollFlags::POLLIN)];
            assert_eq!(poll(&mut descriptors, PollTimeout::from(20_000_u16)), Ok(1));
        }
        assert_eq!(read.read(&mut [0; 2]).unwrap(), 1);
        write.write_all(b"y").unwrap();
        (&client).read_exact(&mut [0]).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn halves_of_tasks_peek_and_try() {
    for tasks in Tasks::each() {
        let (client, mut server) = tasks.connect().await;
        let (read, write) = client.into_split();
        write.writable().await.unwrap();
        assert_eq!(write.try_write(b"question").unwrap(), 8);
        drop(write);
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        server.write_all(b"answer").await.unwrap();
        let mut peeked = [0; 10];
        assert_eq!(read.peek(&mut peeked).await.unwrap(), 6);
        let mut answer = [0; 10];
        read.readable().await.unwrap();
        assert_eq!(read.try_read(&mut answer).unwrap(), 6);
        assert_eq!((question.as_str(), answer), ("question", peeked));
        let idle = timeout(SECOND, read.readable()).await;
        assert!(idle.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn the_half_that_writes_maps_memory_and_writes_into_it() {
    for tasks in Tasks::each() {
        let (client, server) = tasks.connect().await;
        let (mut client_read, mut client_write) = client.into_split();
        let (mut server_read, mut server_write) = server.into_split();
        let memory = client_write.map(10, 3).await.unwrap();
        client_write.write_all(b"m").await.unwrap();
        server_read.read_exact(&mut [0]).await.unwrap();
        server_write.write_all_at(b"written", 4).await.unwrap();
        assert_eq!(server_write.write_at(b"!", 11).await.unwrap(), 1);
        server_write.write_all(b"w").await.unwrap();
        client_read.read_exact(&mut [0]).await.unwrap();
        let mut written = [0; 10];
        memory.read(0, &mut written);
        assert_eq!(written, *b"\0written!\0");
    }
}

/// Repeats a call until it is refused and the descriptor says that it would be again.
fn settle<T: AsFd>(half: &mut T, mut call: impl FnMut(&mut T) -> std::io::Result<usize>) {
    for _ in 0..1000 {
        let refused = call(half).err().map(|error| error.kind());
        let mut fds = [PollFd::new(half.as_fd(), PollFlags::POLLIN)];
        let is_ready = poll(&mut fds, PollTimeout::ZERO).unwrap() > 0;
        if refused == Some(ErrorKind::WouldBlock) && !is_ready {
            return;
        }
    }
    panic!("it is always ready");
}

/// Nobody can read what has come, or the end.
#[test]
fn a_writer_waits_for_room_though_the_half_that_reads_is_gone() {
    for hosts in Hosts::each() {
        for sends in [true, false] {
            let (mut client, server) = hosts.connect();
            server.set_nonblocking(true).unwrap();
            let (read, mut write) = server.into_split();
            drop(read);
            if sends {
                client.write_all(b"unread").unwrap();
            } else {
                client.shutdown(Shutdown::Write).unwrap();
            }
            settle(&mut write, |write| write.write(&[1; 100]));
        }
    }
}

/// Nobody can repeat the write that was refused.
#[test]
fn a_reader_waits_for_bytes_though_the_half_that_writes_was_forgotten() {
    for hosts in Hosts::each() {
        let (mut client, server) = hosts.connect();
        server.set_nonblocking(true).unwrap();
        let (mut read, mut write) = server.into_split();
        let mut written = 0;
        settle(&mut write, |write| {
            let bytes = write.write(&[1; 100]);
            written += bytes.as_ref().unwrap_or(&0);
            bytes
        });
        write.forget();
        client.read_exact(&mut vec![0; written]).unwrap();
        settle(&mut read, |read| read.read(&mut [0]));
    }
}

/// As before the split.
#[test]
fn the_descriptor_of_reunited_halves_reports_bytes() {
    for hosts in Hosts::each() {
        let (mut client, server) = hosts.connect();
        server.set_nonblocking(true).unwrap();
        let (read, write) = server.into_split();
        let mut server = read.reunite(write).unwrap();
        settle(&mut server, |server| server.read(&mut [0]));
        client.write_all(b"x").unwrap();
        let mut fds = [PollFd::new(server.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut fds, PollTimeout::from(10_000_u16)).unwrap(), 1);
        assert_eq!(server.read(&mut [0]).unwrap(), 1);
    }
}
