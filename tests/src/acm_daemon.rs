//! A simulated ibacm, which records requests and answers as its script says.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{IoSlice, Read as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::socket::{ControlMessage, MsgFlags, Shutdown, sendmsg, shutdown};

/// The timeout of a request.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the daemon does about a request; no action is silence.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends these bytes so that they arrive by themselves: the library needs two reads
    /// for two of them.
    Send(Vec<u8>),
    /// Closes the connection.
    Close,
}

/// An entry of a reply, 72 bytes: flags and kind in native byte order, and its
/// contents.
#[must_use]
pub fn acm_entry(flags: u32, kind: u16, info: &[u8]) -> Vec<u8> {
    let mut entry = flags.to_ne_bytes().to_vec();
    entry.extend(kind.to_ne_bytes());
    entry.extend([0; 2]);
    entry.extend(info);
    entry.resize(72, 0);
    entry
}

type Script = dyn FnMut(&[u8]) -> Vec<Action> + Send;

/// A running daemon. Dropping it ends it and removes its files.
#[derive(Debug)]
pub struct AcmDaemon {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    accepting: Option<JoinHandle<()>>,
}

/// Where it listens.
#[derive(Debug)]
enum Endpoint {
    Unix(PathBuf),
    Tcp { port: u16, file: PathBuf },
}

struct Shared {
    ends: AtomicBool,
    script: Mutex<Box<Script>>,
    received: Mutex<Received>,
    done: Condvar,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Received {
    requests: Vec<Vec<u8>>,
    /// Requests whose actions are not complete yet.
    unfinished: usize,
}

#[derive(Default)]
struct Connections {
    count: usize,
    open: HashMap<usize, OwnedFd>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl AcmDaemon {
    /// Listens at `ibacm.sock` in a directory and runs the script for each request.
    #[must_use]
    pub fn unix(rundir: &Path, script: impl FnMut(&[u8]) -> Vec<Action> + Send + 'static) -> Self {
        let path = rundir.join("ibacm.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let accept = move || listener.accept().map(|(stream, _)| OwnedFd::from(stream));
        Self::start(Endpoint::Unix(path), accept, Box::new(script))
    }

    /// Like [`unix`](Self::unix), on a loopback TCP port, whose number is in
    /// `ibacm.port`.
    #[must_use]
    pub fn tcp(rundir: &Path, script: impl FnMut(&[u8]) -> Vec<Action> + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let file = rundir.join("ibacm.port");
        fs::write(&file, format!("{port}\n")).unwrap();
        let accept = move || listener.accept().map(|(stream, _)| OwnedFd::from(stream));
        Self::start(Endpoint::Tcp { port, file }, accept, Box::new(script))
    }

    fn start(
        endpoint: Endpoint,
        mut accept: impl FnMut() -> std::io::Result<OwnedFd> + Send + 'static,
        script: Box<Script>,
    ) -> Self {
        let shared = Arc::new(Shared {
            ends: AtomicBool::new(false),
            script: Mutex::new(script),
            received: Mutex::default(),
            done: Condvar::new(),
            connections: Mutex::default(),
        });
        let is_unix = matches!(endpoint, Endpoint::Unix(_));
        let serving = Arc::clone(&shared);
        let accepting = thread::spawn(move || {
            let mut conversations = Vec::<JoinHandle<()>>::new();
            while let Ok(stream) = accept() {
                if serving.ends.load(Ordering::Acquire) {
                    break;
                }
                let number = serving.register(&stream);
                let shared = Arc::clone(&serving);
                conversations.retain(|conversation| !conversation.is_finished());
                conversations.push(thread::spawn(move || {
                    shared.serve(stream, is_unix);
                    shared.connections.lock().unwrap().open.remove(&number);
                }));
            }
            serving.hang_up();
            for conversation in conversations {
                conversation.join().unwrap();
            }
        });
        Self {
            shared,
            endpoint,
            accepting: Some(accepting),
        }
    }

    /// Returns the received requests when there are `least` of them and the actions for
    /// all of them are complete.
    #[must_use]
    pub fn requests(&self, least: usize) -> Vec<Vec<u8>> {
        let received = self.shared.received.lock().unwrap();
        let early =
            |received: &mut Received| received.requests.len() < least || received.unfinished > 0;
        let (received, waited) = self
            .shared
            .done
            .wait_timeout_while(received, PATIENCE, early)
            .unwrap();
        assert!(!waited.timed_out(), "{} requests", received.requests.len());
        received.requests.clone()
    }

    /// The number of connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.lock().unwrap().count
    }

    /// Closes every connection.
    pub fn hang_up(&self) {
        self.shared.hang_up();
    }
}

impl Drop for AcmDaemon {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        // Connects to wake the accepting thread.
        match &self.endpoint {
            Endpoint::Unix(path) => drop(UnixStream::connect(path)),
            Endpoint::Tcp { port, .. } => drop(TcpStream::connect((Ipv4Addr::LOCALHOST, *port))),
        }
        let (Endpoint::Unix(file) | Endpoint::Tcp { file, .. }) = &self.endpoint;
        let _ = fs::remove_file(file);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn register(&self, stream: &OwnedFd) -> usize {
        let mut connections = self.connections.lock().unwrap();
        connections.count += 1;
        let number = connections.count;
        let kept = stream.try_clone().unwrap();
        connections.open.insert(number, kept);
        number
    }

    /// Answers requests until either side closes.
    fn serve(&self, stream: OwnedFd, is_unix: bool) {
        let mut stream = File::from(stream);
        while let Some(request) = read_request(&mut stream) {
            self.record(&request);
            let actions = (self.script.lock().unwrap())(&request);
            for action in actions {
                match action {
                    Action::Send(bytes) => send_alone(&stream, &bytes, is_unix),
                    // Later reads return nothing.
                    Action::Close => drop(shutdown(stream.as_raw_fd(), Shutdown::Both)),
                }
            }
            self.received.lock().unwrap().unfinished -= 1;
            self.done.notify_all();
        }
    }

    fn record(&self, request: &[u8]) {
        let mut received = self.received.lock().unwrap();
        received.requests.push(request.to_vec());
        received.unfinished += 1;
    }

    fn hang_up(&self) {
        for connection in self.connections.lock().unwrap().open.values() {
            let _ = shutdown(connection.as_raw_fd(), Shutdown::Both);
        }
    }
}

fn read_request(stream: &mut File) -> Option<Vec<u8>> {
    let mut request = vec![0; 16];
    stream.read_exact(&mut request).ok()?;
    let length = u16::from_ne_bytes([request[6], request[7]]);
    request.resize(length.into(), 0);
    stream.read_exact(&mut request[16..]).ok()?;
    Some(request)
}

/// On a Unix socket, a read does not combine the bytes with later ones if a descriptor
/// comes with them. A receiver that does not request descriptors gets none.
fn send_alone(stream: &File, bytes: &[u8], is_unix: bool) {
    let descriptors = [stream.as_fd().as_raw_fd()];
    let seal = [ControlMessage::ScmRights(&descriptors)];
    let seal = if is_unix { &seal[..] } else { &[] };
    let sg_list = [IoSlice::new(bytes)];
    // The peer may have closed the connection.
    let _ = sendmsg::<()>(
        stream.as_raw_fd(),
        &sg_list,
        seal,
        MsgFlags::MSG_NOSIGNAL,
        None,
    );
}
