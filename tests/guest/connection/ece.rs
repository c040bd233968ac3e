//! Enhanced connection establishment (ECE), with simulated options: no soft device has
//! any, but RoCE transmits them.

use std::io;
use std::sync::Mutex;

use rdmacm_core::{
    CmId, ConnParam, DepthLimits, Ece, Event, EventChannel, EventKind, PortSpace, QpAttr,
    QpAttrMask, QueuePair, Transport,
};
use rdmacm_tests::{Listening, PATIENCE, RecordingQueuePair, Site, expect};
use rdmacm_tests_macros::case;

const OURS: u32 = 0x15b3;

fn options(vendor_id: u32, options: u32) -> Ece {
    Ece { vendor_id, options }
}

/// A queue pair with options, which records the options that were set.
#[derive(Debug)]
struct Optional {
    paper: RecordingQueuePair,
    can: Ece,
    chosen: Mutex<Vec<Ece>>,
}

impl Optional {
    fn new(can: Ece) -> Self {
        Self {
            paper: RecordingQueuePair::new(),
            can,
            chosen: Mutex::default(),
        }
    }

    fn chosen(&self) -> Vec<Ece> {
        self.chosen.lock().unwrap().clone()
    }
}

impl QueuePair for Optional {
    fn number(&self) -> u32 {
        self.paper.number()
    }

    fn transport(&self) -> Transport {
        self.paper.transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.paper.depth_limits()
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        self.paper.modify(attr, mask)
    }

    fn ece(&self) -> io::Result<Option<Ece>> {
        Ok(self.chosen().last().copied().or(Some(self.can)))
    }

    fn set_ece(&self, ece: Ece) -> io::Result<()> {
        // Options that it does not support are left out.
        let options = ece.options & self.can.options;
        if ece.vendor_id != self.can.vendor_id {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        self.chosen.lock().unwrap().push(Ece { options, ..ece });
        Ok(())
    }
}

/// Both sides of a connection that is being made.
struct Connecting {
    channel: EventChannel,
    client: CmId,
    listener: Listening,
    server: CmId,
    ece: Ece,
}

fn connecting(site: &Site, queue_pair: &dyn QueuePair, param: ConnParam) -> Connecting {
    let listener = site.listening(PortSpace::TCP);
    let channel = site.channel();
    let client = site.resolved(&channel, listener.address());
    client.resolve_route(PATIENCE).unwrap();
    expect(&channel, EventKind::RouteResolved);
    client.with_queue_pair(queue_pair).connect(param).unwrap();
    let request = listener.next_request();
    Connecting {
        ece: request.ece(),
        channel,
        client,
        listener,
        server: request.into_child().unwrap(),
    }
}

impl Connecting {
    fn response(&self) -> Event {
        expect(&self.channel, EventKind::ConnectResponse)
    }
}

#[case(needs(Datagrams))]
fn both_sides_use_the_requests_options(site: &Site) {
    let client = Optional::new(options(OURS, 0b0111));
    let server = Optional::new(options(OURS, 0b1101));
    let sides = connecting(site, &client, ConnParam::new());
    assert_eq!(sides.ece, options(OURS, 0b0111));
    sides
        .server
        .with_queue_pair(&server)
        .accept(ConnParam::new())
        .unwrap();
    let agreed = options(OURS, 0b0101);
    assert_eq!(server.chosen(), [agreed]);
    let response = sides.response();
    assert_eq!(response.ece(), agreed);
    sides
        .client
        .with_queue_pair(&client)
        .establish(&response)
        .unwrap();
    assert_eq!(client.chosen(), [agreed]);
    expect(&sides.listener.channel, EventKind::Established);
}

#[case(needs(Datagrams))]
fn another_vendors_options_are_not_used(site: &Site) {
    let client = Optional::new(options(OURS, 0b0111));
    let server = Optional::new(options(0x8086, 0b1101));
    let sides = connecting(site, &client, ConnParam::new());
    sides
        .server
        .with_queue_pair(&server)
        .accept(ConnParam::new())
        .unwrap();
    assert_eq!(server.chosen(), [options(0x8086, 0)]);
    let response = sides.response();
    assert_eq!(response.ece(), options(OURS, 0));
    sides
        .client
        .with_queue_pair(&client)
        .establish(&response)
        .unwrap();
    assert_eq!(client.chosen(), [options(OURS, 0)]);
}

#[case(needs(Datagrams))]
fn a_request_without_options_chooses_none(site: &Site) {
    let client = RecordingQueuePair::new();
    let server = Optional::new(options(OURS, 0b1101));
    let sides = connecting(site, &client, ConnParam::new());
    assert_eq!(sides.ece, Ece::default());
    sides
        .server
        .with_queue_pair(&server)
        .accept(ConnParam::new())
        .unwrap();
    assert_eq!(server.chosen(), []);
    assert_eq!(sides.response().ece(), Ece::default());
}

#[case(needs(Datagrams))]
fn a_side_without_options_passes_its_callers_options(site: &Site) {
    let client = RecordingQueuePair::new();
    let sides = connecting(site, &client, ConnParam::new().ece(options(OURS, 1)));
    assert_eq!(sides.ece, options(OURS, 1));
    let server = RecordingQueuePair::new();
    let param = ConnParam::new().ece(options(OURS, 0));
    sides.server.with_queue_pair(&server).accept(param).unwrap();
    assert_eq!(sides.response().ece(), options(OURS, 0));
}

/// A queue pair whose options cannot be queried.
#[derive(Debug)]
struct Mute(RecordingQueuePair);

impl QueuePair for Mute {
    fn number(&self) -> u32 {
        self.0.number()
    }

    fn transport(&self) -> Transport {
        self.0.transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.0.depth_limits()
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        self.0.modify(attr, mask)
    }

    fn ece(&self) -> io::Result<Option<Ece>> {
        Err(io::Error::from_raw_os_error(libc::ENXIO))
    }
}

#[case(needs(Datagrams))]
fn a_side_that_cannot_choose_rejects(site: &Site) {
    let client = RecordingQueuePair::new();
    let sides = connecting(site, &client, ConnParam::new());
    let mute = Mute(RecordingQueuePair::new());
    let refused = sides.server.with_queue_pair(&mute).accept(ConnParam::new());
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENXIO));
    let event = sides.channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.kind(), EventKind::Rejected);
}
