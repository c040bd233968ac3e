//! ibacm, the daemon that keeps InfiniBand's paths.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;

mod connection;
/// The one the guest suite has.
#[cfg(test)]
#[path = "../../../tests/src/acm_daemon.rs"]
#[expect(unreachable_pub, reason = "the guest suite's, which makes it public")]
mod daemon;
mod message;
mod reply;
mod request;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use self::connection::Connection;
use self::message::LONGEST;
use self::reply::Announced;
pub(crate) use self::reply::Reply;
pub(crate) use self::request::Request;

/// Where ibacm puts its socket.
const RUNDIR: &str = "/run";
/// How long nobody looks for a daemon that was not there.
const ABSENCE: Duration = Duration::from_secs(1);
/// How long a question may take unless the caller says otherwise.
const PATIENCE: Duration = Duration::from_secs(2);

/// The ibacm of this host, asked for paths by a
/// [`Directory`](crate::Directory): a daemon that resolves IP addresses to
/// InfiniBand path records ahead of time. Hosts with RoCE or iWARP alone have
/// none, which costs next to nothing and is no error.
///
/// It is asked at `/run/ibacm.sock`, or on the TCP port of the loopback that
/// `/run/ibacm.port` names. Nothing is asked before the first question. One
/// value serves any number of threads, its clones included, and keeps one
/// connection between questions: a question that waits holds up no other.
///
/// A daemon that does not answer takes half of what is left until the caller's
/// deadline, and no more than its [`patience`](Self::patience), from each
/// resolution. One that was not there, or was silent for all of its patience,
/// is not looked for again for a second. Whatever it says is checked;
/// what makes no sense counts as no answer, and the connection is given up.
///
/// ```no_run
/// use rdmacm_addrinfo::{Acm, Directory, Hints};
///
/// let directory = Directory::new().acm(Acm::at("/usr/local/var/run"));
/// for info in directory.resolve("storage-7", "7471", &Hints::rc())? {
///     println!("{info}: {} paths", info.route.len());
/// }
/// # Ok::<(), rdmacm_addrinfo::Error>(())
/// ```
///
/// Source: `ibacm(8)`, rdma-core's `librdmacm/acm.c`.
#[derive(Clone, Debug)]
pub struct Acm {
    daemon: Arc<Daemon>,
    patience: Duration,
}

#[derive(Debug)]
struct Daemon {
    rundir: PathBuf,
    known: Mutex<Known>,
}

/// What the last questions left behind.
#[derive(Debug, Default)]
struct Known {
    /// A connection that nobody uses.
    idle: Option<Connection>,
    /// Until when it counts as absent.
    absent_until: Option<Instant>,
}

/// Until when all questions of one resolution may be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    until: Instant,
    /// Whether the caller would have waited longer.
    is_patience: bool,
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// There is no daemon.
    Absent(Errno),
    /// It did not answer in time.
    Silent,
    /// It ended the connection; before a byte of an answer came, or after.
    Ended { unanswered: bool },
    /// What it said is no answer, for this reason.
    Nonsense(&'static str),
}

impl Default for Acm {
    fn default() -> Self {
        Self::new()
    }
}

impl Acm {
    /// The ibacm of `/run`.
    #[must_use]
    pub fn new() -> Self {
        Self::at(RUNDIR)
    }

    /// One that keeps its socket and its port file in another directory, as
    /// where rdma-core was installed under another prefix.
    #[must_use]
    pub fn at(rundir: impl Into<PathBuf>) -> Self {
        Self {
            daemon: Arc::new(Daemon {
                rundir: rundir.into(),
                known: Mutex::default(),
            }),
            patience: PATIENCE,
        }
    }

    /// The longest all questions of one resolution may take, 2 seconds unless
    /// set; the caller's deadline may give less.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// When to stop asking, in a resolution that ends at `deadline`.
    pub(crate) fn limit(&self, deadline: Option<Instant>) -> Limit {
        let now = Instant::now();
        let half = deadline.map(|deadline| deadline.saturating_duration_since(now) / 2);
        let most = half.map_or(self.patience, |half| half.min(self.patience));
        Limit {
            until: now.checked_add(most).unwrap_or(now),
            is_patience: most == self.patience,
        }
    }

    /// What ibacm knows: nothing if it is not there or does not answer in time.
    pub(crate) fn ask(&self, request: &Request<'_>, limit: Limit) -> Reply {
        self.try_ask(request, limit).unwrap_or_default()
    }

    fn try_ask(&self, request: &Request<'_>, limit: Limit) -> Result<Reply, Failure> {
        let answer = self.daemon.ask(&request.to_bytes(), limit.until);
        match answer {
            Err(Failure::Absent(_)) => self.daemon.forget(),
            // Whoever had less time than that knows little of a busy daemon.
            Err(Failure::Silent) if limit.is_patience => self.daemon.forget(),
            _ => {}
        }
        answer
    }
}

impl Daemon {
    /// Over the connection that is kept, or a new one where that has ended.
    fn ask(&self, request: &[u8], until: Instant) -> Result<Reply, Failure> {
        if let Some(connection) = self.idle() {
            match self.converse(connection, request, until) {
                // The daemon went, and may have come again.
                Err(Failure::Ended { unanswered: true }) => {}
                answer => return answer,
            }
        }
        if self.is_absent() {
            return Err(Failure::Absent(Errno::EAGAIN));
        }
        match Connection::open(&self.rundir, until) {
            Ok(connection) => self.converse(connection, request, until),
            Err(Errno::ETIMEDOUT) => Err(Failure::Silent),
            Err(errno) => Err(Failure::Absent(errno)),
        }
    }

    /// One question and its answer. A connection that did not end well may
    /// have anything to say later: it is not used again.
    fn converse(
        &self,
        connection: Connection,
        request: &[u8],
        until: Instant,
    ) -> Result<Reply, Failure> {
        let reply = exchange(&connection, request, until)?;
        self.known().idle = Some(connection);
        Ok(reply)
    }

    /// The connection that is kept, if it is still of use; nobody else has it
    /// meanwhile.
    fn idle(&self) -> Option<Connection> {
        let idle = self.known().idle.take();
        idle.filter(Connection::is_idle)
    }

    fn is_absent(&self) -> bool {
        let until = self.known().absent_until;
        until.is_some_and(|until| Instant::now() < until)
    }

    fn forget(&self) {
        self.known().absent_until = Instant::now().checked_add(ABSENCE);
    }

    /// Both values are whole at any time.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn exchange(connection: &Connection, request: &[u8], until: Instant) -> Result<Reply, Failure> {
    let sent = connection.send(request, until);
    sent.map_err(|errno| Failure::of(errno, true))?;
    // One byte more than any answer has.
    let mut buffer = [0; LONGEST + 1];
    let mut filled = 0;
    loop {
        let rest = buffer.get_mut(filled..).unwrap_or_default();
        let received = connection.receive(rest, until);
        filled += received.map_err(|errno| Failure::of(errno, filled == 0))?;
        let come = buffer.get(..filled).unwrap_or_default();
        let Some((header, entries)) = come.split_first_chunk() else {
            continue;
        };
        let announced = Announced::read(header).map_err(Failure::Nonsense)?;
        if entries.len() == announced.length {
            return Ok(announced.with_entries(entries));
        }
        if entries.len() > announced.length {
            return Err(Failure::Nonsense("more comes than it announces"));
        }
    }
}

impl Failure {
    fn of(errno: Errno, unanswered: bool) -> Self {
        match errno {
            Errno::ETIMEDOUT => Self::Silent,
            _ => Self::Ended { unanswered },
        }
    }
}
