//! Spans and events for `tracing`.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rdmacm::{Connector, Listener, Node};
use rdmacm_tests::{PATIENCE, Site};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

/// Records each span and event as a line.
#[derive(Clone, Default)]
struct Notes {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
}

/// The fields of one line.
struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Notes {
    fn note(&self, mut line: String, visit: impl FnOnce(&mut Fields<'_>)) {
        visit(&mut Fields(&mut line));
        self.lines.lock().unwrap().push(line);
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "rdmacm"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let number = self.spans.fetch_add(1, Ordering::Relaxed) + 1;
        let line = format!("span {number} {}", span.metadata().name());
        self.note(line, |fields| span.record(fields));
        Id::from_u64(number)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let line = format!("in {}", span.into_u64());
        self.note(line, |fields| values.record(fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let span = event.parent().map_or(0, Id::into_u64);
        self.note(format!("in {span}"), |fields| event.record(fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[case]
fn a_span_for_each_id_and_an_event_for_each_event(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let queue_pairs = QueuePairs::new(site);
    let notes = Notes::default();
    // With one subscriber only, tracing caches the interest of the thread that reaches
    // a callsite first, which may have no subscriber. With two it asks both.
    let _other = Dispatch::new(notes.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let incoming = listener.accept(PATIENCE).unwrap();
            drop(incoming.accept_with(queue_pairs.clone()).unwrap());
        });
        tracing::subscriber::with_default(notes.clone(), || {
            let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
            let mut client = connector.connect_with(queue_pairs.clone()).unwrap();
            // The second connection's span has the same name.
            client.migrate(&Node::open().unwrap()).unwrap();
            client.closed(PATIENCE).unwrap();
        });
    });
    let lines = notes.lines.lock().unwrap();
    // One id has one span, and all its events are in it.
    assert_eq!(lines[0], "span 1 cm_id");
    assert!(lines[1..].iter().all(|line| line.starts_with("in 1 ")));
    assert!(lines[1].contains("id=CmId"), "{lines:#?}");
    let named = lines.iter().filter(|line| line.contains("id=CmId"));
    assert_eq!(named.count(), 1, "{lines:#?}");
    for text in [
        "kind=ADDR_RESOLVED status=0",
        "kind=ROUTE_RESOLVED status=0",
        "kind=DISCONNECTED status=0",
        "stage=ResolveAddress elapsed=",
        "stage=ResolveRoute elapsed=",
        "stage=Connect elapsed=",
        "message=established",
        "device=",
        "peer=",
    ] {
        let times = lines.iter().filter(|line| line.contains(text)).count();
        assert_eq!(times, 1, "{text}: {lines:#?}");
    }
}
