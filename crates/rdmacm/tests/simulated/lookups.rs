//! Lookups of names that do not end, or end badly.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel as pipe};
use std::sync::{Arc, Mutex};
use std::thread;

use rdmacm::addrinfo::{self, AddrInfoResolver, HostQuery, NameError, NameResolver};
use rdmacm::core::{CommandNumber, Deadline};
use rdmacm::{Cause, Connector, Listener, Node, RetryPolicy, Stage};
use rdmacm_sim::Host;

use crate::hosts::{Hosts, PORT, SECOND, Server, channel, node};

/// A node on which a lookup does not end before this is dropped.
pub(crate) struct HeldLookup {
    node: Node,
    _end: Sender<()>,
}

#[derive(Debug)]
struct SilentResolver(Mutex<Receiver<()>>);

impl NameResolver for SilentResolver {
    fn host(&self, _: &HostQuery<'_>) -> Result<addrinfo::Host, NameError> {
        let ended = self.0.lock().unwrap().recv();
        ended.unwrap_err();
        Err(NameError::NoName)
    }
}

fn node_with(host: &Host, resolver: impl NameResolver + 'static) -> Node {
    let addr_info_resolver = AddrInfoResolver::new().name_resolver(resolver);
    let options = Node::options().channel(channel(host));
    options
        .addr_info_resolver(&addr_info_resolver)
        .open()
        .unwrap()
}

fn connector(node: &Node) -> Connector {
    Connector::new(("storage-7", PORT)).with_node(node)
}

impl HeldLookup {
    pub(crate) fn new(host: &Host) -> Self {
        let (end, ended) = pipe();
        let node = node_with(host, SilentResolver(Mutex::new(ended)));
        Self { node, _end: end }
    }

    pub(crate) fn connector(&self) -> Connector {
        connector(&self.node)
    }
}

/// The node has an event to read, and cannot, however long the caller would wait.
#[test]
fn a_failure_of_the_node_ends_a_lookup() {
    for deadline in [(3600 * SECOND).into(), Deadline::Never] {
        let hosts = Hosts::roce();
        let lookup = HeldLookup::new(&hosts.client);
        let address = (hosts.client.address().unwrap(), PORT);
        let listener = Listener::options().with_node(&lookup.node).bind(address);
        let get_event = CommandNumber::GET_EVENT;
        hosts.client.fail_next(get_event, usize::MAX, libc::ENOMEM);
        thread::scope(|scope| {
            scope.spawn(|| {
                let connector = Connector::new(address).with_node(&node(&hosts.server));
                let connector = connector.deadline(SECOND);
                connector.connect_with(&hosts.server_pairs).unwrap_err()
            });
            let connector = lookup.connector().deadline(deadline);
            let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
            assert!(matches!(error.cause(), Cause::Refused(_)), "{error}");
            assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
            assert_eq!(error.stage(), Stage::LookUp);
        });
        drop(listener);
    }
}

#[derive(Debug)]
struct BrokenResolver;

impl NameResolver for BrokenResolver {
    fn host(&self, _: &HostQuery<'_>) -> Result<addrinfo::Host, NameError> {
        panic!("on purpose");
    }
}

#[test]
fn a_resolver_that_panics_is_no_deadline() {
    let hosts = Hosts::roce();
    let node = node_with(&hosts.client, BrokenResolver);
    let connector = connector(&node).deadline(Deadline::Never);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    let Cause::Name(addrinfo::Error::LookupPanicked) = error.cause() else {
        panic!("{error:?}");
    };
    assert!(!error.is_timeout());
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::Other);
}

/// How many lookups of an `AddrInfoResolver` run at a time.
const MAX_LOOKUPS: usize = 64;

/// Goes on for a moment once so many lookups as are allowed run. It never sleeps: the simulated
/// clock would move to the deadlines of those that wait.
#[derive(Debug)]
struct BusyResolver {
    address: IpAddr,
    lookups: Arc<Lookups>,
}

#[derive(Debug, Default)]
struct Lookups {
    running: AtomicUsize,
    most: AtomicUsize,
}

impl NameResolver for BusyResolver {
    fn host(&self, _: &HostQuery<'_>) -> Result<addrinfo::Host, NameError> {
        let Lookups { running, most } = &*self.lookups;
        let now = running.fetch_add(1, Ordering::Relaxed) + 1;
        most.fetch_max(now, Ordering::Relaxed);
        while most.load(Ordering::Relaxed) < MAX_LOOKUPS {
            thread::yield_now();
        }
        // Long enough for others to begin, if nothing held them up.
        (0..100).for_each(|_| thread::yield_now());
        running.fetch_sub(1, Ordering::Relaxed);
        Ok([SocketAddr::from((self.address, 0))].into_iter().collect())
    }
}

#[test]
fn more_lookups_than_the_limit_wait_for_one_another() {
    let hosts = Hosts::roce();
    // While the resolvers compute, which may take a while on a busy machine, no deadline passes.
    hosts.fabric.set_idle_time(60 * SECOND);
    let server = Server::start(&hosts);
    let lookups = Arc::new(Lookups::default());
    let resolver = BusyResolver {
        address: hosts.address().ip(),
        lookups: Arc::clone(&lookups),
    };
    let node = node_with(&hosts.client, resolver);
    thread::scope(|scope| {
        for index in 0..100 {
            let (hosts, node) = (&hosts, &node);
            let deadline = match index % 4 {
                0 => Deadline::Never,
                _ => (60 * SECOND).into(),
            };
            scope.spawn(move || {
                let connector = connector(node).deadline(deadline);
                connector.connect_with(&hosts.client_pairs).unwrap();
            });
        }
    });
    assert_eq!(server.stop().len(), 100);
    assert_eq!(lookups.most.load(Ordering::Relaxed), MAX_LOOKUPS);
}

/// Answers one lookup after the other.
#[derive(Debug)]
struct Answers(Mutex<Vec<Result<IpAddr, NameError>>>);

impl Answers {
    /// The last one is repeated.
    fn new(answers: impl IntoIterator<Item = Result<IpAddr, NameError>>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Self(Mutex::new(answers))
    }
}

impl NameResolver for Answers {
    fn host(&self, _: &HostQuery<'_>) -> Result<addrinfo::Host, NameError> {
        let mut answers = self.0.lock().unwrap();
        let answer = match answers.as_slice() {
            [last] => *last,
            _ => answers.pop().unwrap(),
        };
        Ok([SocketAddr::from((answer?, 0))].into_iter().collect())
    }
}

/// The number of attempts that failed before the caller got an error; 0 with a connection.
fn attempts(answers: impl IntoIterator<Item = Result<IpAddr, NameError>>, hosts: &Hosts) -> u32 {
    let node = node_with(&hosts.client, Answers::new(answers));
    let connector = connector(&node).retry(RetryPolicy::attempts(3));
    match connector.connect_with(&hosts.client_pairs) {
        Ok(_) => 0,
        Err(error) => error.attempts(),
    }
}

#[test]
fn a_lookup_that_failed_for_now_is_retried() {
    let hosts = Hosts::roce();
    let server = Server::start(&hosts);
    let address = Ok(hosts.address().ip());
    assert_eq!(attempts([Err(NameError::Again), address], &hosts), 0);
    assert_eq!(attempts([Err(NameError::Again)], &hosts), 3);
    assert_eq!(attempts([Err(NameError::NoName), address], &hosts), 1);
    server.stop();
}

#[test]
fn a_retry_follows_a_name_to_another_address() {
    let hosts = Hosts::roce();
    let server = Server::start(&hosts);
    let other = hosts.fabric.find_host("other").unwrap();
    let (other, address) = (Ok(other.address().unwrap()), Ok(hosts.address().ip()));
    // Nobody listens there.
    assert_eq!(attempts([other, address], &hosts), 0);
    assert_eq!(attempts([other, Err(NameError::NoName)], &hosts), 3);
    server.stop();
}

/// Answers once, and not before this is dropped after that.
#[derive(Debug)]
struct OneAnswer {
    answer: Mutex<Option<IpAddr>>,
    silent: SilentResolver,
}

impl NameResolver for OneAnswer {
    fn host(&self, query: &HostQuery<'_>) -> Result<addrinfo::Host, NameError> {
        match self.answer.lock().unwrap().take() {
            Some(ip) => Ok([SocketAddr::from((ip, 0))].into_iter().collect()),
            None => self.silent.host(query),
        }
    }
}

#[test]
fn a_name_server_that_has_become_silent_does_not_end_the_retries() {
    let hosts = Hosts::roce();
    let (_end, ended) = pipe();
    let resolver = OneAnswer {
        answer: Mutex::new(Some(hosts.address().ip())),
        silent: SilentResolver(Mutex::new(ended)),
    };
    let node = node_with(&hosts.client, resolver);
    let connector = connector(&node).retry(RetryPolicy::attempts(3));
    let connector = connector.deadline(10 * SECOND);
    // Nobody listens.
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    assert!(error.is_rejected(), "{error}");
    assert_eq!(error.attempts(), 3);
}
