//! mckey: datagrams to a multicast group.

use std::time::Instant;

use rdmacm_core::{
    CmAddr, CmId, EventChannel, EventKind, Gid, JoinFlags, MulticastGroup, PortSpace, UdInfo,
};
use rdmacm_tests::{PATIENCE, SECOND, Site, expect, next_datagram, send_datagram};

use super::tool::Tool;

crate::cases!("c_tools::mckey":
    it_receives_what_we_send,
    we_receive_what_it_sends,
);

/// Datagrams, and bytes of each.
const MESSAGES: u32 = 10;
const SIZE: usize = 100;

fn start(site: &Site, group: &str, more: &[&str]) -> Tool {
    let address = site.v4.to_string();
    let arguments = ["-m", group, "-b", &address];
    Tool::start("mckey", &[&arguments, more].concat())
}

/// One of our ids in a group.
struct Member {
    _channel: EventChannel,
    id: CmId,
    _membership: MulticastGroup,
    group: UdInfo,
}

impl Member {
    fn new(site: &Site, group: [u8; 4]) -> Self {
        let channel = site.channel();
        let id = channel.create_id(PortSpace::UDP).unwrap();
        id.bind(site.v4(0)).unwrap();
        let address = CmAddr::from((group, 0));
        let membership = id.join_multicast(address, JoinFlags::FULL_MEMBER).unwrap();
        let event = expect(&channel, EventKind::MulticastJoin);
        Self {
            group: event.ud().unwrap(),
            _channel: channel,
            id,
            _membership: membership,
        }
    }
}

fn it_receives_what_we_send(site: &Site) {
    let mut receiver = start(site, "239.71.9.1", &[]);
    receiver.wait_for("receiving data transfers");
    let member = Member::new(site, [239, 71, 9, 1]);
    let queue_pair = site.datagrams(&member.id, 1, SIZE);
    for _ in 0..MESSAGES {
        send_datagram(&queue_pair, &member.group, &[7; SIZE]);
    }
    let ended = receiver.finish();
    ended.check_success();
    ended.check_said("test complete");
}

/// It does not wait for its device, which sends nothing any more once it has left: so
/// it is started until all have come that once were to.
fn we_receive_what_it_sends(site: &Site) {
    let member = Member::new(site, [239, 71, 9, 2]);
    let queue_pair = site.datagrams(&member.id, MESSAGES, SIZE);
    let gid = Gid(member.group.ah_attr.grh.destination_gid);
    queue_pair
        .attach(gid, member.group.ah_attr.destination_lid)
        .unwrap();
    let until = Instant::now() + PATIENCE;
    let mut received = 0;
    while received < MESSAGES {
        assert!(Instant::now() < until, "{received} datagrams");
        let ended = start(site, "239.71.9.2", &["-s"]).finish();
        ended.check_success();
        ended.check_said("test complete");
        while let Some((told, bytes)) = next_datagram(&queue_pair, SECOND / 10) {
            assert_eq!(bytes.len(), SIZE);
            assert!(told.source.has_route);
            assert_eq!(told.immediate, Some(told.source.queue_pair));
            received += 1;
        }
    }
}
