//! Datagram services: service ID resolution (SIDR).

use rdmacm_core::{
    CmId, Error, Event, EventChannel, EventKind, PortSpace, QpType, RDMA_UDP_QKEY, SidrStatus,
    UdParam,
};
use rdmacm_tests::{Listening, PATIENCE, Site, expect, free_qp_number};
use rdmacm_tests_macros::case;

struct Client {
    channel: EventChannel,
    id: CmId,
}

impl Client {
    fn new(site: &Site, listener: &Listening) -> Self {
        let channel = site.channel();
        let id = channel.create_id(PortSpace::UDP).unwrap();
        id.resolve_addr(None, listener.address(), PATIENCE).unwrap();
        expect(&channel, EventKind::AddrResolved);
        id.resolve_route(PATIENCE).unwrap();
        expect(&channel, EventKind::RouteResolved);
        Self { channel, id }
    }

    fn assert_unreachable(&self, status: SidrStatus) -> Event {
        let event = self.channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::Unreachable);
        assert_eq!(SidrStatus::from_status(event.status()), Some(status));
        event
    }
}

fn asked(site: &Site) -> (Client, Listening, CmId) {
    let listener = site.listening(PortSpace::UDP);
    let client = Client::new(site, &listener);
    client.id.connect(UdParam::new()).unwrap();
    let child = listener.next_request().into_child().unwrap();
    (client, listener, child)
}

fn refused(outcome: Result<(), Error>) {
    assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EINVAL));
}

#[case(needs(Datagrams))]
fn a_service_returns_its_qp_number_and_qkey(site: &Site) {
    let listener = site.listening(PortSpace::UDP);
    let client = Client::new(site, &listener);
    client.id.connect(UdParam::new()).unwrap();
    let request = listener.next_request();
    assert_eq!(request.conn(), None);
    assert_eq!(request.ud().unwrap().qp_number, 0);
    let child = request.into_child().unwrap();
    assert_eq!(child.qp_type(), QpType::UD);
    let number = free_qp_number();
    let param = UdParam::new().qp_number(number).qkey(0x7147);
    child.accept(param).unwrap();
    let event = expect(&client.channel, EventKind::Established);
    let service = event.ud().unwrap();
    // The QKey is ignored for IP addresses.
    assert_eq!((service.qp_number, service.qkey), (number, RDMA_UDP_QKEY));
    let attr = service.ah_attr;
    assert_eq!((attr.is_global, attr.port_number), (1, 1));
    let gid = site.v4.to_ipv6_mapped().octets();
    assert_eq!(attr.grh.destination_gid, gid);
    assert_eq!(event.conn(), None);
    // The server gets no further event.
    assert!(listener.channel.try_next_event().unwrap().is_none());
}

#[case(needs(Datagrams))]
fn private_data_fill_their_fields(site: &Site) {
    let data = [7; 181];
    let listener = site.listening(PortSpace::UDP);
    let client = Client::new(site, &listener);
    let param = |length| UdParam::new().private_data(&data[..length]).unwrap();
    let too_long = |length, limit| Err(Error::PrivateDataTooLong { length, limit });
    assert_eq!(client.id.connect(param(181)), too_long(181, 180));
    client.id.connect(param(180)).unwrap();
    let request = listener.next_request();
    assert_eq!(request.private_data(), &data[..180]);
    let child = request.into_child().unwrap();
    let answer = |length| param(length).qp_number(0x71);
    assert_eq!(child.accept(answer(137)), too_long(137, 136));
    assert_eq!(child.reject(&data[..137]), too_long(137, 136));
    child.accept(answer(136)).unwrap();
    let event = expect(&client.channel, EventKind::Established);
    assert_eq!(event.private_data(), &data[..136]);
    let (client, _listener, child) = asked(site);
    child.accept(answer(3)).unwrap();
    let event = expect(&client.channel, EventKind::Established);
    let mut padded = [0; 136];
    padded[..3].copy_from_slice(&data[..3]);
    assert_eq!(event.private_data(), padded);
}

#[case(needs(Datagrams))]
fn a_service_rejects(site: &Site) {
    let (client, _listener, child) = asked(site);
    child.reject(b"closed today").unwrap();
    let event = client.assert_unreachable(SidrStatus::REJECT);
    assert!(event.private_data().starts_with(b"closed today"));
    assert_eq!(event.private_data().len(), 136);
    assert_eq!(event.ud(), None);
}

#[case(needs(Datagrams))]
fn a_dropped_request_is_rejected(site: &Site) {
    let (client, _listener, child) = asked(site);
    drop(child);
    client.assert_unreachable(SidrStatus::REJECT);
}

#[case(needs(Datagrams))]
fn a_missing_service_is_reported(site: &Site) {
    let listener = site.listening(PortSpace::UDP);
    let client = Client::new(site, &listener);
    drop(listener);
    client.id.connect(UdParam::new()).unwrap();
    let event = client.assert_unreachable(SidrStatus::UNSUPPORTED);
    let words = event.failure().unwrap().to_string();
    assert!(words.starts_with("UNREACHABLE 1: "), "{words}");
}

#[case(needs(Datagrams))]
fn a_request_is_answered_once(site: &Site) {
    let (client, _listener, child) = asked(site);
    let param = UdParam::new().qp_number(0x71);
    child.accept(&param).unwrap();
    refused(child.accept(&param));
    expect(&client.channel, EventKind::Established);
    refused(child.reject(&[]));
}

#[case(needs(Datagrams))]
fn a_request_is_sent_once(site: &Site) {
    let (client, _listener, child) = asked(site);
    refused(client.id.connect(UdParam::new()));
    child.reject(&[]).unwrap();
    client.assert_unreachable(SidrStatus::REJECT);
    refused(client.id.connect(UdParam::new()));
}

#[case(needs(Datagrams))]
fn disconnect_is_refused(site: &Site) {
    let (client, _listener, child) = asked(site);
    child.accept(UdParam::new().qp_number(0x71)).unwrap();
    expect(&client.channel, EventKind::Established);
    client.id.disconnect().unwrap();
    child.disconnect().unwrap();
    assert!(client.channel.try_next_event().unwrap().is_none());
}
