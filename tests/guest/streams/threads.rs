//! The threads of a process that has streams.

use std::io::{ErrorKind, Read as _, Write as _};
use std::thread::sleep;
use std::time::Instant;

use rdmacm::{Connector, Listener, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_core::CmAddr;
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;

use super::killed_peer::Process;
use super::rstream::expect_end;
use crate::child::{run_at, site, task_at};

const CLIENT: &str = "a client with a stream";
const SERVER: &str = "a server with a stream";
const PORT: &str = "RDMACM_TEST_PORT";

pub(crate) const TASKS: &[(&str, fn())] = &[(CLIENT, connect), (SERVER, accept)];

/// Those that connect and accept end when they have been idle. librdmacm keeps some for listeners
/// and for keep-alives.
#[case(waiting)]
fn a_process_with_streams_has_one_thread(site: &Site) {
    run_at(SERVER, site);
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn wait_until_others_have_ended() {
    let until = Instant::now() + PATIENCE;
    while threads() > 1 {
        assert!(Instant::now() < until, "{} threads", threads());
        sleep(SECOND / 50);
    }
}

/// For long enough to send some keep-alives.
fn wait_for_nothing(mut stream: &RdmaStream) {
    stream.set_read_timeout(Some(SECOND / 4)).unwrap();
    let nothing = stream.read(&mut [0]).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::TimedOut);
    assert_eq!(threads(), 1);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
}

fn options() -> StreamOptions {
    StreamOptions::new().keep_alive(SECOND / 20)
}

fn accept() {
    let site = site();
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let listener = RdmaListener::new(listener, options());
    let mut client = task_at(CLIENT, &site);
    let client = client.env(PORT, port.to_string()).spawn().unwrap();
    let mut client = Process(client);
    let (mut stream, _) = super::accept(&listener);
    stream.read_exact(&mut [0]).unwrap();
    wait_until_others_have_ended();
    wait_for_nothing(&stream);
    stream.write_all(b"!").unwrap();
    expect_end(&site, &stream);
    assert_eq!(threads(), 1);
    drop(stream);
    assert!(client.0.wait().unwrap().success());
}

fn connect() {
    let port = std::env::var(PORT).unwrap().parse().unwrap();
    let address: CmAddr = site().v4(port);
    let connector = Connector::new(address).deadline(PATIENCE);
    let mut stream = connector.connect_stream(options()).unwrap();
    wait_until_others_have_ended();
    wait_for_nothing(&stream);
    // Now the server waits.
    stream.write_all(b"?").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    assert_eq!(threads(), 1);
}
