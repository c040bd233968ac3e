//! rdma-core's rcopy as the peer, in both roles. Its client opens a file of the server, sends its
//! content and closes it, and the server answers each of the three.

use std::fs;
use std::io::{Read, Write};

use rdmacm::{RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site, Soft, free_port};
use rdmacm_tests_macros::case;

use super::rstream::is_closed_at_once;
use super::{accept, bytes, for_c_clients, to_c_server};
use crate::c_tools::listening::wait_until_its_socket_listens;
use crate::c_tools::tool::Tool;
use crate::command::cat;
use crate::packet_delay::hold_back_first_messages;
use crate::rdma_core::RdmaCore;

const OPEN: u8 = 1;
const CLOSE: u8 = 2;
const WRITE: u8 = 3;
const ANSWER: u8 = 0x80;

/// A header: version, command, length of the message, a number, an identification; in the order
/// of this host.
fn header(command: u8, length: usize, number: u32) -> Vec<u8> {
    let length = u16::try_from(length).unwrap();
    let mut header = vec![0, command];
    header.extend(length.to_ne_bytes());
    header.extend(number.to_ne_bytes());
    header.extend([0; 8]);
    header
}

const HEADER: usize = 16;

/// Reads a header of this command, and returns the length of the message behind it.
fn expect(mut stream: &RdmaStream, command: u8) -> usize {
    let mut bytes = [0; HEADER];
    stream.read_exact(&mut bytes).unwrap();
    let [version, of, l0, l1, ..] = bytes;
    assert_eq!((version, of), (0, command));
    usize::from(u16::from_ne_bytes([l0, l1])) - HEADER
}

/// Sends a message, and reads the answer, which is success.
fn ask(mut stream: &RdmaStream, command: u8, message: &[&[u8]]) {
    for part in message {
        stream.write_all(part).unwrap();
    }
    assert_eq!(expect(stream, command | ANSWER), 0);
}

fn answer(mut stream: &RdmaStream, command: u8) {
    stream
        .write_all(&header(command | ANSWER, HEADER, 0))
        .unwrap();
}

fn patient(stream: &RdmaStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
}

/// A path of the guest that no other test uses.
fn path(site: &Site, rdma_core: RdmaCore, role: &str) -> String {
    let name = site.device;
    format!("/tmp/rcopy-{name}-{rdma_core:?}-{role}")
}

const SIZE: usize = 1_000_003;

fn to_server(site: &Site, rdma_core: RdmaCore) {
    let copy = path(site, rdma_core, "copy");
    let (server, stream) = to_c_server(site, site.v4.into(), &StreamOptions::new(), |port| {
        let server = Tool::start_with(rdma_core, "rcopy", &["-p", &port.to_string()]);
        wait_until_its_socket_listens(&server, &format!("0.0.0.0:{port}"));
        server
    });
    patient(&stream);

    let mut name = copy.clone().into_bytes();
    name.push(0);
    ask(
        &stream,
        OPEN,
        &[&header(OPEN, HEADER + name.len(), 0o600), &name],
    );
    let content = bytes(SIZE);
    let length = (SIZE as u64).to_ne_bytes();
    ask(
        &stream,
        WRITE,
        &[&header(WRITE, HEADER + length.len(), 0), &length, &content],
    );
    ask(&stream, CLOSE, &[&header(CLOSE, HEADER, 0)]);
    drop(server.stop());
    assert!(fs::read(copy).unwrap() == content);
}

fn from_client(site: &Site, rdma_core: RdmaCore) {
    let source = path(site, rdma_core, "source");
    let content = bytes(SIZE);
    fs::write(&source, &content).unwrap();
    let (listener, port) = for_c_clients(site, site.v4, StreamOptions::new());
    let to = format!("{}:its-name", site.v4);
    let client = Tool::start_with(rdma_core, "rcopy", &[&source, &to, "-p", &port.to_string()]);
    let (mut stream, _) = accept(&listener);
    patient(&stream);

    let mut name = vec![0; expect(&stream, OPEN)];
    stream.read_exact(&mut name).unwrap();
    assert!(name.starts_with(b"its-name\0"), "{name:?}");
    answer(&stream, OPEN);
    let mut length = [0; 8];
    assert_eq!(expect(&stream, WRITE), length.len());
    stream.read_exact(&mut length).unwrap();
    assert_eq!(u64::from_ne_bytes(length), SIZE as u64);
    let mut received = vec![0; SIZE];
    stream.read_exact(&mut received).unwrap();
    answer(&stream, WRITE);
    assert_eq!(expect(&stream, CLOSE), 0);
    answer(&stream, CLOSE);
    let ended = client.finish();
    ended.assert_success();
    ended.assert_contains(&format!("{SIZE} bytes in "));
    assert!(received == content);
}

/// What the client sends to open a file of this name.
fn open(name: &str) -> Vec<u8> {
    let name = [name.as_bytes(), &[0]].concat();
    [header(OPEN, HEADER + name.len(), 0o600), name].concat()
}

/// What the client sends once the file is open.
fn write_and_close(content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u64).to_ne_bytes();
    [
        &header(WRITE, HEADER + length.len(), 0)[..],
        &length,
        content,
        &header(CLOSE, HEADER, 0),
    ]
    .concat()
}

/// The answers of the server.
fn all_answers() -> Vec<u8> {
    let answers = [OPEN, WRITE, CLOSE].map(|command| header(command | ANSWER, HEADER, 0));
    answers.concat()
}

fn from_cat(site: &Site, rdma_core: RdmaCore) {
    let copy = path(site, rdma_core, "copy-of-cat");
    let content = bytes(SIZE);
    let mut closed = 0;
    loop {
        let port = free_port().to_string();
        let server = Tool::start_with(rdma_core, "rcopy", &["-p", &port]);
        wait_until_its_socket_listens(&server, &format!("0.0.0.0:{port}"));
        let input = cat::memory_file(&[open(&copy), write_and_close(&content)].concat());
        let answers = cat::memory_file(b"");
        let output = answers.try_clone().unwrap();
        let ended = cat::client(site, &port, input, output).finish();
        drop(server.stop());
        if site.soft == Soft::Siw && closed < 3 && is_closed_at_once(&ended) {
            closed += 1;
            continue;
        }
        ended.assert_success();
        assert!(fs::read(&copy).unwrap() == content);
        assert_eq!(cat::content(&answers), all_answers());
        return;
    }
}

fn to_cat(site: &Site, rdma_core: RdmaCore) {
    let source = path(site, rdma_core, "source-for-cat");
    let content = bytes(SIZE);
    fs::write(&source, &content).unwrap();
    let messages = cat::memory_file(b"");
    let output = messages.try_clone().unwrap();
    let (server, port) = cat::server(site, cat::memory_file(&all_answers()), output);
    hold_back_first_messages(site, &port);
    let to = format!("{}:its-name", site.v4);
    let client = Tool::start_with(rdma_core, "rcopy", &[&source, &to, "-p", &port]);
    let ended = client.finish();
    ended.assert_success();
    server.finish().assert_success();
    let received = cat::content(&messages);
    let [_, OPEN, l0, l1, ..] = received[..] else {
        panic!("{:?}", received.get(..HEADER));
    };
    // The client sends more than the name.
    let (open, rest) = received.split_at(u16::from_ne_bytes([l0, l1]).into());
    assert!(open[HEADER..].starts_with(b"its-name\0"), "{open:?}");
    assert!(rest == write_and_close(&content), "{} bytes", rest.len());
}

#[case]
fn files_are_copied_from_cat_and_to_it(site: &Site) {
    for rdma_core in RdmaCore::compared() {
        from_cat(site, *rdma_core);
        to_cat(site, *rdma_core);
    }
}

#[case]
fn files_are_copied_to_it_and_from_it(site: &Site) {
    for rdma_core in RdmaCore::compared() {
        to_server(site, *rdma_core);
        from_client(site, *rdma_core);
    }
}
