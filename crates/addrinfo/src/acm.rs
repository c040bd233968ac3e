//! ibacm, the daemon that caches InfiniBand path records.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use parking_lot::{Mutex, MutexGuard};

mod connection;
/// The one the guest suite has.
#[cfg(test)]
#[path = "../../../tests/src/acm_daemon.rs"]
#[expect(unreachable_pub, reason = "the guest suite's, which makes it public")]
mod daemon;
mod message;
mod reply;
mod request;
mod rundir;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use self::connection::Connection;
use self::message::LONGEST;
pub(crate) use self::reply::Reply;
use self::reply::ReplyHeader;
pub(crate) use self::request::Request;
use self::rundir::Rundir;

/// How long an absent daemon is not looked for again.
const ABSENCE: Duration = Duration::from_secs(1);
/// The default timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest timeout: the clock can be that far in the future.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A client of ibacm, which an [`AddrInfoResolver`](crate::AddrInfoResolver) queries for paths. The
/// daemon resolves IP addresses to InfiniBand path records ahead of time. Hosts with only
/// RoCE or iWARP do not run it; its absence costs little and is no error.
///
/// The client connects to `/run/ibacm.sock`, or to the loopback TCP port in
/// `/run/ibacm.port`, at the first query. One value serves any number of threads, its
/// clones included. It keeps one connection between queries, and a query that waits
/// delays no other.
///
/// The queries of one resolution take at most half of the time until the caller's
/// deadline, and at most [`timeout`](Self::timeout). After a daemon was absent or did not
/// answer for all of the timeout, the client does not query it for one second. Invalid
/// answers count as no answer and end the connection.
///
/// ```no_run
/// use rdmacm_addrinfo::{Acm, AddrInfoResolver, Hints};
///
/// let resolver = AddrInfoResolver::new().acm(Acm::with_rundir("/usr/local/var/run"));
/// for info in resolver.resolve("storage-7", "7471", &Hints::rc())? {
///     println!("{info}: {} paths", info.paths.len());
/// }
/// # Ok::<(), rdmacm_addrinfo::Error>(())
/// ```
///
/// Source: `ibacm(8)`, rdma-core's `librdmacm/acm.c`.
#[derive(Clone, Debug)]
pub struct Acm {
    daemon: Arc<Daemon>,
    timeout: Duration,
}

#[derive(Debug, Default)]
struct Daemon {
    rundir: Rundir,
    known: Mutex<Known>,
}

/// The state that earlier queries left.
#[derive(Debug, Default)]
struct Known {
    /// An idle connection, and the process that opened it: a forked child shares the socket,
    /// and could read a reply to its parent.
    idle: Option<(u32, Connection)>,
    /// When to look for an absent daemon again.
    absent_until: Option<Instant>,
}

/// The deadline of all queries of one resolution, counted from the first one for which
/// there is a daemon.
#[derive(Debug)]
pub(crate) struct Limit {
    timeout: Duration,
    /// The caller's deadline.
    deadline: Option<Instant>,
    end: OnceCell<LimitEnd>,
}

/// When a limit is reached.
#[derive(Clone, Copy, Debug)]
struct LimitEnd {
    until: Instant,
    /// Whether the caller's deadline is later.
    is_full_timeout: bool,
}

impl Limit {
    fn new(timeout: Duration, deadline: Option<Instant>) -> Self {
        Self {
            timeout,
            deadline,
            end: OnceCell::new(),
        }
    }

    fn end(&self) -> LimitEnd {
        *self.end.get_or_init(|| {
            let now = Instant::now();
            let left = |deadline: Instant| deadline.saturating_duration_since(now) / 2;
            let half = self.deadline.map(left);
            let most = half.map_or(self.timeout, |half| half.min(self.timeout));
            LimitEnd {
                until: now.checked_add(most).unwrap_or(now),
                is_full_timeout: most == self.timeout,
            }
        })
    }

    fn until(&self) -> Instant {
        self.end().until
    }
}

/// Why a query failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no daemon.
    Absent(Errno),
    /// It was not asked: not long ago there was none, or it was silent.
    Skipped,
    /// It did not answer in time.
    Silent,
    /// The daemon ended the connection, before or after the first byte of an answer.
    Ended { unanswered: bool },
    /// The answer is invalid, for this reason.
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
        Self::from_rundir(Rundir::default())
    }

    /// The ibacm whose socket and port file are in another directory, for example of
    /// an rdma-core with another prefix.
    #[must_use]
    pub fn with_rundir(rundir: impl Into<PathBuf>) -> Self {
        Self::from_rundir(Rundir::at(&rundir.into()))
    }

    fn from_rundir(rundir: Rundir) -> Self {
        Self {
            daemon: Arc::new(Daemon {
                rundir,
                known: Mutex::default(),
            }),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// The most time for all queries of one resolution, 2 seconds by default and a year at most;
    /// the caller's deadline may leave less.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// The limit of a resolution that ends at `deadline`.
    pub(crate) fn limit(&self, deadline: Option<Instant>) -> Limit {
        Limit::new(self.timeout, deadline)
    }

    /// Queries ibacm.
    pub(crate) fn ask(&self, request: &Request<'_>, limit: &Limit) -> Result<Reply, Failure> {
        let answer = self.daemon.ask(request, limit);
        match answer {
            Err(Failure::Absent(_)) => self.daemon.forget(),
            // A shorter wait does not show that the daemon is silent.
            Err(Failure::Silent) if limit.end().is_full_timeout => self.daemon.forget(),
            _ => {}
        }
        answer
    }
}

/// A client of the ibacm of `/run` for one resolution. It remembers no absence.
#[derive(Debug, Default)]
pub(crate) struct SingleUseAcm(Daemon);

impl SingleUseAcm {
    /// As [`Acm::limit`].
    pub(crate) fn limit(deadline: Option<Instant>) -> Limit {
        Limit::new(DEFAULT_TIMEOUT, deadline)
    }

    /// Queries ibacm.
    pub(crate) fn ask(&self, request: &Request<'_>, limit: &Limit) -> Result<Reply, Failure> {
        self.0.ask(request, limit)
    }
}

impl Daemon {
    /// Queries over the idle connection, or a new one if that has ended.
    fn ask(&self, request: &Request<'_>, limit: &Limit) -> Result<Reply, Failure> {
        let (idle, absent_until) = self.take_idle();
        if let Some(connection) = idle {
            match self.query_on(connection, request, limit.until()) {
                // The daemon may have been restarted.
                Err(Failure::Ended { unanswered: true }) => {}
                answer => return answer,
            }
        }
        if absent_until.is_some_and(|until| Instant::now() < until) {
            return Err(Failure::Skipped);
        }
        match Connection::open(&self.rundir, || limit.until()) {
            Ok(connection) => self.query_on(connection, request, limit.until()),
            Err(Errno::ETIMEDOUT) => Err(Failure::Silent),
            Err(errno) => Err(Failure::Absent(errno)),
        }
    }

    /// Sends one query and receives its answer. After an error the connection is closed:
    /// late bytes of the answer may still arrive on it.
    fn query_on(
        &self,
        connection: Connection,
        request: &Request<'_>,
        until: Instant,
    ) -> Result<Reply, Failure> {
        let reply = exchange(&connection, &request.to_bytes(), until)?;
        self.known().idle = Some((process::id(), connection));
        Ok(reply)
    }

    /// Takes the idle connection if it is still usable. Returns also when to look for an absent
    /// daemon again.
    fn take_idle(&self) -> (Option<Connection>, Option<Instant>) {
        let mut known = self.known();
        let (idle, absent_until) = (known.idle.take(), known.absent_until);
        drop(known);
        let is_usable =
            |(opener, idle): &(u32, Connection)| *opener == process::id() && idle.is_idle();
        let usable = idle.filter(is_usable).map(|(_, idle)| idle);
        (usable, absent_until)
    }

    fn forget(&self) {
        self.known().absent_until = Instant::now().checked_add(ABSENCE);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

fn exchange(connection: &Connection, request: &[u8], until: Instant) -> Result<Reply, Failure> {
    let sent = connection.send(request, until);
    sent.map_err(|errno| Failure::of(errno, true))?;
    // One byte more than the longest answer.
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
        let announced = ReplyHeader::read(header).map_err(Failure::Nonsense)?;
        if entries.len() == announced.length {
            return Ok(announced.with_entries(entries));
        }
        if entries.len() > announced.length {
            return Err(Failure::Nonsense("it is longer than its header says"));
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
