//! A listener whose socket siw has closed.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use rdmacm::{Cause, Listener, Step};
use rdmacm_tests::{PATIENCE, SECOND, Site};

use crate::child;

crate::cases!("face::deaf": a_listener_says_that_it_is_deaf);

pub(crate) const TASKS: &[(&str, fn())] = &[("listens_until_deaf", listens_until_deaf)];

const DEAF: &str = "deaf";

/// The process is not waited for: with it the kernel would destroy what it has freed.
/// It goes with the guest.
fn a_listener_says_that_it_is_deaf(site: &Site) {
    let mut command = child::task_at("listens_until_deaf", site);
    let output = command.stdout(Stdio::piped()).spawn().unwrap().stdout;
    let mut line = String::new();
    let mut output = BufReader::new(output.unwrap());
    output.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), DEAF);
}

/// In a child.
fn listens_until_deaf() {
    let site = child::site();
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    close_its_socket(SocketAddr::from((site.v4, port)));
    let error = listener.accept(PATIENCE).unwrap_err();
    assert_eq!(error.step(), Step::Accept);
    let Cause::Deaf(address) = error.cause() else {
        panic!("{error}");
    };
    assert_eq!(*address, SocketAddr::from((site.v4, port)));
    // As the kernel would not survive it.
    drop(listener);
    println!("{DEAF}");
    loop {
        thread::park();
    }
}

/// By what any peer can do, until nobody is there to answer.
fn close_its_socket(address: SocketAddr) {
    let until = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect_timeout(&address, SECOND) {
            Ok(stream) => drop(stream),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}"),
        }
        assert!(Instant::now() < until, "it listens still");
    }
}
