//! HTTP: the server of Python, and clients.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use rdmacm_tests::{PATIENCE, Site, free_port};
use rdmacm_tests_macros::case;

use super::{ANY, NEWEST, exit_to, serve, tcp_server};
use crate::c_tools::tool::Tool;
use crate::command::cat::{content, memory_file};
use crate::rdma_core::RdmaCore;
use crate::streams::bytes;
use crate::tcp;

/// The size of the file: several times the buffers of a stream.
const SIZE: usize = 1_000_003;
/// The system's, whatever else is in `PATH`.
const PYTHON: &str = "/usr/bin/python3";

fn patient(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// The lines of a message before its body.
fn header(reader: &mut BufReader<&TcpStream>) -> io::Result<Vec<String>> {
    let lines = reader.lines();
    lines
        .take_while(|line| !matches!(line.as_deref(), Ok("")))
        .collect()
}

/// Downloads the file, on a connection that the server keeps open.
fn download(server: SocketAddr) -> io::Result<()> {
    let stream = TcpStream::connect(server)?;
    patient(&stream)?;
    (&stream).write_all(b"GET /file HTTP/1.1\r\nHost: test\r\n\r\n")?;
    let mut reader = BufReader::new(&stream);
    let header = header(&mut reader)?;
    if header.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    assert_eq!(header[0], "HTTP/1.1 200 OK");
    let mut received = vec![0; SIZE];
    reader.read_exact(&mut received)?;
    assert!(received == bytes(SIZE));
    Ok(())
}

/// Serves the file once, until the client closes the connection.
fn upload(server: &TcpListener) -> io::Result<()> {
    let stream = tcp::accept(server);
    patient(&stream)?;
    let mut reader = BufReader::new(&stream);
    let header = header(&mut reader)?;
    assert!(header[0].starts_with("GET /file HTTP/1."), "{header:?}");
    write!(&stream, "HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n")?;
    (&stream).write_all(&bytes(SIZE))?;
    reader.read_to_end(&mut Vec::new())?;
    Ok(())
}

#[case(needs(Preloaded, NewestPreloaded))]
fn python_serves_a_file(site: &Site) {
    let folder = std::env::temp_dir().join(format!("served-{}", free_port()));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), bytes(SIZE)).unwrap();
    let folder_text = folder.to_str().unwrap();
    for rdma_core in RdmaCore::preloaded_since(NEWEST) {
        let start = |port: u16| {
            let mut server = rdma_core.preloaded(PYTHON);
            server.args(["-u", "-m", "http.server", "--protocol", "HTTP/1.1"]);
            server.args(["--bind", &site.v4.to_string(), "--directory", folder_text]);
            server.arg(port.to_string());
            Tool::spawn_on(&mut server, Stdio::null(), Stdio::piped())
        };
        let (mut server, _proxy) = serve(site, start, download);
        server.wait_for(&format!("{} - - ", site.v4));
        server.stop().assert_contains("\"GET /file HTTP/1.1\" 200");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Runs a client, whose output is what it has downloaded.
fn check_client(site: &Site, rdma_core: RdmaCore, program: &[&str]) {
    let (server, exit) = tcp_server();
    let (_proxy, port) = exit_to(site, exit);
    let output = memory_file(b"");
    let mut client = rdma_core.preloaded(program[0]);
    client.args(&program[1..]);
    client.arg(format!("http://{}:{port}/file", site.v4));
    let copy = output.try_clone().unwrap().into();
    let client = Tool::spawn_on(&mut client, Stdio::null(), copy);
    let serving = thread::spawn(move || upload(&server));
    client.finish().assert_success();
    assert!(content(&output) == bytes(SIZE));
    // The client may be gone before its end has come through.
    drop(serving.join().unwrap());
}

#[case(needs(Preloaded))]
fn curl_downloads_a_file(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(ANY) {
        check_client(site, rdma_core, &["curl", "--silent", "--show-error"]);
    }
}

const DOWNLOAD: &str = "import sys, urllib.request
sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())";

#[case(needs(Preloaded, NewestPreloaded))]
fn python_downloads_a_file(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(NEWEST) {
        check_client(site, rdma_core, &[PYTHON, "-c", DOWNLOAD]);
    }
}
