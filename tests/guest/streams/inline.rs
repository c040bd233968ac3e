//! Writes that are inline, and longer ones.

use std::io::{IoSlice, Read as _, Write as _};
use std::thread;

use rdmacm::{Connector, Listener, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site, Soft};
use rdmacm_tests_macros::case;

use super::{Pair, accept, bytes};

/// The most bytes that all releases of the device support.
pub(super) fn most(site: &Site) -> u32 {
    match site.soft {
        Soft::Rxe => 512,
        Soft::Siw => 80,
    }
}

/// Writes as many bytes as it takes slices of the lengths, several slices at a time.
fn write(mut stream: &RdmaStream, bytes: &[u8], lengths: &[usize]) {
    let mut slices = Vec::new();
    let mut rest = bytes;
    for length in lengths {
        let (slice, later) = rest.split_at(*length);
        slices.push(IoSlice::new(slice));
        rest = later;
    }
    let mut slices = &mut slices[..];
    while !slices.is_empty() {
        let written = stream.write_vectored(slices).unwrap();
        IoSlice::advance_slices(&mut slices, written);
    }
}

#[case]
fn writes_of_any_length_are_carried(site: &Site) {
    let lengths: [&[usize]; 9] = [
        &[1],
        &[64],
        &[65],
        &[80],
        &[513],
        &[30, 34],
        &[30, 35],
        &[70, 1, 2, 600],
        &[0, 3, 0, 300],
    ];
    for inline in [0, 1, 64, most(site)] {
        let options = StreamOptions::new().inline(inline).sends(8);
        let pair = Pair::with(site, &options, &options);
        for lengths in lengths.iter().cycle().take(200) {
            let bytes = bytes(lengths.iter().sum());
            let mut received = vec![0; bytes.len()];
            thread::scope(|scope| {
                scope.spawn(|| write(&pair.client, &bytes, lengths));
                (&pair.server).read_exact(&mut received).unwrap();
            });
            assert!(received == bytes, "{lengths:?} with {inline} bytes inline");
        }
    }
}

/// Neither side makes a stream then, and the reason is its own device's.
#[case]
fn more_than_the_device_supports_is_refused(site: &Site) {
    let too_many = StreamOptions::new().inline(1 << 20);
    let listener = Listener::bind(site.v4(0)).unwrap();
    let connector = || Connector::new(listener.local_addr()).deadline(PATIENCE);
    let refused = connector().connect_stream(too_many.clone()).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "{refused}");

    thread::scope(|scope| {
        let client = scope.spawn(|| connector().connect_stream(StreamOptions::new()));
        let incoming = listener.accept(PATIENCE).unwrap();
        let refused = incoming.accept_stream(too_many).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "{refused}");
        let rejected = client.join().unwrap().unwrap_err();
        assert!(rejected.is_rejected(), "{rejected}");
    });

    // The listener is as before.
    let listener = RdmaListener::new(listener, StreamOptions::new());
    let connector = Connector::new(listener.local_addr().unwrap()).deadline(PATIENCE);
    thread::scope(|scope| {
        let client = scope.spawn(|| connector.connect_stream(StreamOptions::new()));
        let (server, _) = accept(&listener);
        super::carry(&client.join().unwrap().unwrap(), &server, &[1]);
    });
}
