//! The streams of a listener, one after the other.

use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::task::{Context, Waker};
use std::thread;

use futures_util::{Stream, StreamExt};
use rdmacm::tokio::RdmaStream;
use rdmacm::verbs::CommandNumber;
use rdmacm::{Error, Stage};
use rdmacm_test_helpers::poll_at_most;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::tasks::Tasks;
use super::{Hosts, SECOND, small};

#[test]
fn each_client_is_an_item_until_the_listener_stops() {
    for hosts in Hosts::each() {
        let stop = hosts.listener.stop_handle();
        thread::scope(|scope| {
            scope.spawn(|| {
                let connector = hosts.connector().private_data(b"other protocol").unwrap();
                assert!(connector.connect().unwrap_err().is_rejected());
                for name in [b'a', b'b'] {
                    let mut stream = hosts.connector().connect_stream(small()).unwrap();
                    stream.write_all(&[name]).unwrap();
                    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
                }
                stop.stop();
            });
            let read_name = |stream: std::io::Result<rdmacm::RdmaStream>| {
                let mut name = [0];
                stream.unwrap().read_exact(&mut name).unwrap();
                name[0]
            };
            let names = hosts.listener.incoming().map(read_name);
            assert_eq!(names.collect::<Vec<_>>(), b"ab");
        });
        assert!(hosts.listener.incoming().next().is_none());
    }
}

#[test]
fn removing_the_device_is_the_last_item() {
    for hosts in Hosts::each() {
        let mut incoming = hosts.listener.incoming();
        hosts.server.remove_device(hosts.device);
        let error = incoming.next().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
        assert!(incoming.next().is_none());
    }
}

/// Such as one for which there is no memory.
#[test]
fn a_stream_that_cannot_be_made_does_not_end_the_listener() {
    for hosts in Hosts::each() {
        hosts
            .server
            .fail_next(CommandNumber::REG_MR, 1, libc::ENOMEM);
        thread::scope(|scope| {
            scope.spawn(|| {
                let error = hosts.connector().connect_stream(small()).unwrap_err();
                assert!(error.is_rejected(), "{error}");
                hosts.connector().connect_stream(small()).unwrap();
            });
            let error = hosts.listener.accept().unwrap_err();
            let found = Error::from_io(&error).unwrap();
            assert_eq!(found.stage(), Stage::QueuePair, "{error}");
            assert!(!found.ends_listener(), "{error}");
            hosts.listener.accept().unwrap();
        });
        hosts.listener.stop();
        let error = hosts.listener.accept().unwrap_err();
        assert!(Error::from_io(&error).is_some_and(Error::ends_listener));
    }
}

/// As a server of another crate, which takes a `Stream` of readers and writers.
async fn serve(incoming: impl Stream<Item = std::io::Result<RdmaStream>>) -> Vec<u8> {
    let read_name = async |stream: std::io::Result<RdmaStream>| stream.unwrap().read_u8().await;
    let names = incoming.then(read_name).map(Result::unwrap);
    names.collect().await
}

#[tokio::test(start_paused = true)]
async fn the_streams_are_a_stream_of_futures() {
    for tasks in Tasks::each() {
        let connecting = async {
            for name in [b'a', b'b'] {
                let connecting = tasks.connector().connect_stream(small());
                let mut stream = connecting.await.unwrap();
                stream.write_u8(name).await.unwrap();
                assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
            }
            tasks.listener.stop_handle().stop();
        };
        let (names, ()) = tokio::join!(serve(tasks.listener.incoming()), connecting);
        assert_eq!(names, b"ab");
        assert!(tasks.listener.incoming().next().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn streams_are_polled_for() {
    for tasks in Tasks::each() {
        for _ in 0..3 {
            let connecting = tasks.connector().connect_stream(small());
            let accepting = poll_fn(|context| tasks.listener.poll_accept(context));
            let (connected, accepted) = tokio::join!(connecting, accepting);
            let (mut stream, _) = accepted.unwrap();
            stream.write_all(b"hello").await.unwrap();
            connected.unwrap().read_exact(&mut [0; 5]).await.unwrap();
        }
        tasks.listener.stop();
        let polled = poll_fn(|context| tasks.listener.poll_accept(context)).await;
        let error = polled.unwrap_err();
        assert!(Error::from_io(&error).is_some_and(Error::is_stopped));
    }
}

/// As one whose task waits for something else meanwhile.
#[tokio::test(start_paused = true)]
async fn a_stream_of_streams_that_is_kept_holds_up_nobody() {
    for tasks in Tasks::each() {
        let mut kept = tasks.listener.incoming();
        let mut context = Context::from_waker(Waker::noop());
        assert!(kept.poll_next_unpin(&mut context).is_pending());
        let mut other = tasks.listener.incoming();
        for polls in [false, true] {
            let connecting = tasks.connector().connect_stream(small());
            let next = async {
                if polls {
                    StreamExt::next(&mut other).await
                } else {
                    other.next().await
                }
            };
            let (connected, accepted) = tokio::join!(connecting, timeout(SECOND, next));
            let mut accepted = accepted.unwrap().unwrap().unwrap();
            connected.unwrap().write_all(b"hello").await.unwrap();
            accepted.read_exact(&mut [0; 5]).await.unwrap();
        }
    }
}

/// Neither the wait for the next one, nor the `Stream` as a whole.
#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_loses_no_stream() {
    for tasks in Tasks::each() {
        for polls in 0..20 {
            let connecting = tasks.connector().connect_stream(small());
            let accepting = async {
                let mut incoming = tasks.listener.incoming();
                let mut first = poll_at_most(polls, incoming.next()).await.flatten();
                if first.is_none() {
                    first = poll_at_most(polls, incoming.next()).await.flatten();
                }
                drop(incoming);
                match first {
                    Some(stream) => stream.unwrap(),
                    None => tasks.listener.accept().await.unwrap().0,
                }
            };
            let (connected, mut accepted) = tokio::join!(connecting, accepting);
            connected.unwrap().write_all(b"hello").await.unwrap();
            accepted.read_exact(&mut [0; 5]).await.unwrap();
        }
    }
}
