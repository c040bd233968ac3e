//! Lookups of names that do not end, or end badly.

use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel as pipe};
use std::thread;

use rdmacm::addrinfo::{self, Directory, HostQuestion, NameError, Resolver};
use rdmacm::core::{CommandNumber, Deadline};
use rdmacm::{Cause, Connector, Listener, Node, Stage};
use rdmacm_sim::Host;

use crate::hosts::{Hosts, PORT, SECOND, channel, node};

/// A node on which a lookup does not end before this is dropped.
pub(crate) struct HeldLookup {
    node: Node,
    _end: Sender<()>,
}

#[derive(Debug)]
struct SilentResolver(Mutex<Receiver<()>>);

impl Resolver for SilentResolver {
    fn host(&self, _: &HostQuestion<'_>) -> Result<addrinfo::Host, NameError> {
        let ended = self.0.lock().unwrap().recv();
        ended.unwrap_err();
        Err(NameError::NoName)
    }
}

fn node_with(host: &Host, resolver: impl Resolver + 'static) -> Node {
    let directory = Directory::new().resolver(resolver);
    let options = Node::options().channel(channel(host));
    options.directory(&directory).open().unwrap()
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

impl Resolver for BrokenResolver {
    fn host(&self, _: &HostQuestion<'_>) -> Result<addrinfo::Host, NameError> {
        panic!("on purpose");
    }
}

#[test]
fn a_resolver_that_panics_is_no_deadline() {
    let hosts = Hosts::roce();
    let node = node_with(&hosts.client, BrokenResolver);
    let connector = connector(&node).deadline(Deadline::Never);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    let Cause::Name(addrinfo::Error::LookupDied) = error.cause() else {
        panic!("{error:?}");
    };
    assert!(!error.is_timeout());
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::Other);
}
