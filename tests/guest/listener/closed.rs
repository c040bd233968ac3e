//! Listeners whose TCP socket siw has closed. The tests run in a guest of their own
//! (task `closed_listeners` of `cargo xtask test`), because the kernel may crash when
//! it destroys the id of such a listener.

use std::io::{BufRead, BufReader, ErrorKind};
use std::mem::ManuallyDrop;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::panic::catch_unwind;
use std::process::{ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm::{
    Cause, Connector, Error, Listener, Node, RdmaListener, RdmaStream, Stage, StreamOptions, tokio,
};
use rdmacm_core::{AddressAbi, CmAddr, Family};
use rdmacm_test_helpers::child_ends;
use rdmacm_tests::{PATIENCE, SECOND, Site};

use crate::child;
use crate::connector::asynchronous::on_one_thread;

pub(crate) const TASKS: &[(&str, fn())] = &[
    ("closed_listeners", closed_listeners),
    ("lose_listeners", lose_listeners),
];

/// The output of the process with the listeners if all checks succeed.
const DONE: &str = "the listeners noticed";

/// Longer than a listener takes to detect it on the slowest machine.
const WHILE: Duration = Duration::from_secs(4);
/// How often a listener checks its socket. A client of siw waits no more than ten seconds.
const CHECKED_EVERY: Duration = Duration::from_secs(2);

/// The process with the listeners is not waited for: it ends with the guest.
fn closed_listeners() {
    let site = Site::siw(AddressAbi::AnyFamily);
    let mut command = child::task_at("lose_listeners", &site);
    let output = command.stdout(Stdio::piped()).spawn().unwrap().stdout;
    let lines = BufReader::new(output.unwrap()).lines();
    let last = lines.map_while(Result::ok).next();
    assert_eq!(last.as_deref(), Some(DONE));
}

/// In a child, which never ends.
fn lose_listeners() {
    let outcome = catch_unwind(|| {
        let site = child::site();
        // Before there are other threads.
        a_forked_child_drops_it(&site);
        let others = [site.v4(0), CmAddr::any(Family::V4), CmAddr::any(Family::V6)];
        let others = others.map(|address| Listener::bind(address).unwrap());
        let site = &site;
        // Each check waits for seconds.
        thread::scope(|scope| {
            scope.spawn(|| an_address(site, IpAddr::V4(site.v4)));
            scope.spawn(|| an_address(site, IpAddr::V6(site.v6)));
            scope.spawn(|| a_wildcard(site, "0.0.0.0:0"));
            scope.spawn(|| a_wildcard(site, "[::]:0"));
            scope.spawn(|| nobody_waits(site));
            scope.spawn(|| a_task_waits(site));
            scope.spawn(|| the_command_stays(site));
            scope.spawn(|| a_command_that_has_served_stays(site, &["ping", "--count", "1"]));
            scope.spawn(|| a_command_that_has_served_stays(site, &["cat"]));
            scope.spawn(|| a_request_comes_first(site));
            scope.spawn(|| a_stream_comes_first(site));
            for listener in &others {
                scope.spawn(|| goes_on(site, listener));
            }
        });
    });
    // The reason for a failure is on standard error.
    println!("{}", outcome.map_or("failed", |()| DONE));
    loop {
        thread::park();
    }
}

fn an_address(site: &Site, address: IpAddr) {
    let listener = Listener::bind((address, 0)).unwrap();
    let listener = ManuallyDrop::new(listener);
    let address = listener.local_addr();
    close_socket(address.socket_addr().unwrap());
    for _ in 0..2 {
        expect_closed(site, &listener.accept(PATIENCE).unwrap_err(), address);
    }
    drop(ManuallyDrop::into_inner(listener));
    is_kept(address);
}

/// A wildcard listener keeps waiting, because other devices may exist.
fn a_wildcard(site: &Site, address: &str) {
    let listener = ManuallyDrop::new(Listener::bind(address).unwrap());
    let port = listener.local_addr().port();
    close_socket(SocketAddr::from((site.v4, port)));
    let any = CmAddr::any(Family::V4).with_port(port);
    expect_closed(site, &listener.accept(PATIENCE).unwrap_err(), any);
    let error = listener.accept(WHILE).unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    drop(ManuallyDrop::into_inner(listener));
    is_kept(any);
}

/// Dropping the listener does not destroy its id, although the closed socket was not
/// detected.
fn nobody_waits(site: &Site) {
    let listener = ManuallyDrop::new(Listener::bind(site.v4(0)).unwrap());
    let address = listener.local_addr();
    close_socket(address.socket_addr().unwrap());
    drop(ManuallyDrop::into_inner(listener));
    is_kept(address);
}

fn a_task_waits(site: &Site) {
    on_one_thread().block_on(async {
        let listener = tokio::Listener::bind(site.v4(0)).unwrap();
        let listener = ManuallyDrop::new(listener);
        let address = listener.local_addr();
        close_socket(address.socket_addr().unwrap());
        for _ in 0..2 {
            let error = listener.accept(PATIENCE).await.unwrap_err();
            expect_closed(site, &error, address);
        }
        drop(ManuallyDrop::into_inner(listener));
        is_kept(address);
    });
}

/// The child's check of the inherited socket would be taken for the parent's.
fn a_forked_child_drops_it(site: &Site) {
    let mut listener = Some(Listener::bind(site.v4(0)).unwrap());
    let address = listener.as_ref().unwrap().local_addr();
    close_socket(address.socket_addr().unwrap());
    assert!(child_ends(|| drop(listener.take())));
    let listener = ManuallyDrop::new(listener.unwrap());
    expect_closed(site, &listener.accept(PATIENCE).unwrap_err(), address);
    drop(ManuallyDrop::into_inner(listener));
    is_kept(address);
}

/// A request that has come before the socket was closed is accepted, although nobody has waited
/// until the check of the socket was due.
fn a_request_comes_first(site: &Site) {
    let node = Node::open().unwrap();
    let options = Listener::options().with_node(&node);
    let listener = ManuallyDrop::new(options.clone().bind(site.v4(0)).unwrap());
    let address = listener.local_addr();
    // For the descriptor of the node.
    let idle = RdmaListener::new(options.bind(site.v4(0)).unwrap(), StreamOptions::default());
    thread::scope(|scope| {
        let connector = Connector::new(address).deadline(PATIENCE);
        let client = scope.spawn(|| connector.connect().unwrap());
        close_after_request(site, &idle, address);
        let server = listener.accept(PATIENCE).unwrap().accept().unwrap();
        client.join().unwrap().close(PATIENCE).unwrap();
        drop(server);
    });
    expect_closed(site, &listener.accept(PATIENCE).unwrap_err(), address);
    drop(ManuallyDrop::into_inner(listener));
    is_kept(address);
}

/// As above, of a listener for streams.
fn a_stream_comes_first(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let address = listener.local_addr();
    let listener = ManuallyDrop::new(RdmaListener::new(listener, StreamOptions::default()));
    thread::scope(|scope| {
        let client = scope.spawn(|| RdmaStream::connect(address).unwrap());
        close_after_request(site, &listener, address);
        let (server, _) = listener.accept().unwrap();
        drop((server, client.join().unwrap()));
    });
    let error = listener.accept().unwrap_err();
    let error = error.get_ref().unwrap().downcast_ref().unwrap();
    expect_closed(site, error, address);
    drop(ManuallyDrop::into_inner(listener));
    is_kept(address);
}

/// Closes the socket at `address` when the kernel has a request for the listener's node, and
/// returns when the check of the socket is due.
fn close_after_request(site: &Site, listener: &RdmaListener, address: CmAddr) {
    let mut requests = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut requests, timeout).unwrap(), 1);
    close_socket(address.socket_addr().unwrap());
    let other = Listener::bind(site.v4(0)).unwrap();
    let error = other.accept(CHECKED_EVERY).unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
}

/// The command's server reports it and does not end, because its end might crash the
/// kernel.
fn the_command_stays(site: &Site) {
    let mut output = serving(&["ping", "--listen", &site.v4.to_string()]);
    let listening = line(&mut output);
    let address = listening.trim().rsplit(' ').next().unwrap();
    close_socket(address.parse().unwrap());
    let words = line(&mut output);
    assert!(words.contains("siw") && words.contains(address), "{words}");
    stays(&output);
}

/// Nor does one whose socket for one address family is closed, after its only client has come by
/// the other.
fn a_command_that_has_served_stays(site: &Site, arguments: &[&str]) {
    let mut output = serving(&[arguments, &["--listen"]].concat());
    let listening = line(&mut output);
    let port = listening.trim().rsplit(':').next().unwrap();
    close_socket(SocketAddr::from((site.v4, port.parse().unwrap())));
    let words = line(&mut output);
    assert!(words.contains("siw"), "{words}");
    let mut client = Command::new("rdmacm");
    client
        .args(arguments)
        .args(["--timeout", "60000", "--port", port, &site.v6.to_string()]);
    let served = client.stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(served.unwrap().success());
    stays(&output);
}

/// A server of the command on a port of the kernel's choice, and its standard error.
fn serving(arguments: &[&str]) -> BufReader<ChildStderr> {
    let mut command = Command::new("rdmacm");
    command.args(arguments).args(["--port", "0"]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).spawn().unwrap().stderr;
    BufReader::new(output.unwrap())
}

fn line(output: &mut impl BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

/// Its standard error, which may have more lines, ends when the process does.
fn stays(output: &BufReader<ChildStderr>) {
    let mut end = [PollFd::new(output.get_ref().as_fd(), PollFlags::empty())];
    let timeout = PollTimeout::try_from(WHILE).unwrap();
    assert_eq!(poll(&mut end, timeout).unwrap(), 0);
}

/// A listener with an open socket waits, and accepts connections.
fn goes_on(site: &Site, listener: &Listener) {
    let error = listener.accept(WHILE).unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    let address = site.v4(listener.local_addr().port());
    thread::scope(|scope| {
        let connect = || {
            Connector::new(address)
                .deadline(PATIENCE)
                .connect()
                .unwrap()
        };
        let client = scope.spawn(connect);
        let server = listener.accept(PATIENCE).unwrap().accept().unwrap();
        client.join().unwrap().close(PATIENCE).unwrap();
        drop(server);
    });
}

fn expect_closed(site: &Site, error: &Error, expected: CmAddr) {
    assert_eq!(error.stage(), Stage::WaitForRequest);
    let Cause::ListenerSocketClosed { address, device } = error.cause() else {
        panic!("{error}");
    };
    assert_eq!((*address, device.as_str()), (expected, site.device));
    assert!(error.elapsed() < PATIENCE / 2, "{error}");
}

/// The id still holds the port: for a wildcard the kernel reports that the address is
/// not available (`cma_check_port`).
fn is_kept(address: CmAddr) {
    let error = Listener::bind(address).unwrap_err();
    let taken = if address.is_unspecified() {
        libc::EADDRNOTAVAIL
    } else {
        libc::EADDRINUSE
    };
    assert_eq!(error.raw_os_error(), Some(taken), "{error}");
}

/// Closes the socket with connections that any TCP peer can make, until nothing
/// listens. A pending connection is reset when the socket is closed.
fn close_socket(address: SocketAddr) {
    let until = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect_timeout(&address, SECOND) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return,
            connected => drop(connected),
        }
        assert!(Instant::now() < until, "it listens still");
    }
}
