//! Channels and ids: addresses, routes, options.

use rdmacm_core::{CmAddr, Gid, PortSpace};

use super::answer::Answer;
use super::words::{Words, ip, number};
use super::{Machine, Objects};

impl Objects {
    pub(super) fn make_channel(&mut self, machine: &dyn Machine, words: &Words<'_>) -> Answer {
        let channel = machine.open_channel();
        let answer = Answer::from_result(&channel);
        if let Ok(channel) = channel {
            self.channels.insert(words.at(1).to_owned(), channel);
        }
        answer
    }

    pub(super) fn make_id(&mut self, words: &Words<'_>) -> Answer {
        let port_space = match words.at(3) {
            "tcp" => PortSpace::TCP,
            "udp" => PortSpace::UDP,
            "ipoib" => PortSpace::IPOIB,
            "ib" => PortSpace::IB,
            other => panic!("not a port space: {other}"),
        };
        let id = self.channel(words.at(1)).create_id(port_space);
        let answer = Answer::from_result(&id);
        if let Ok(id) = id {
            self.ids.insert(words.at(2).to_owned(), id);
        }
        answer
    }

    pub(super) fn bind(&self, words: &Words<'_>) -> Answer {
        Answer::from_result(&self.id(words.at(1)).bind(words.address(2)))
    }

    pub(super) fn resolve_addr(&self, words: &Words<'_>) -> Answer {
        let source = words.value("from").map(|word| CmAddr::from((ip(word), 0)));
        let id = self.id(words.at(1));
        let (destination, timeout) = (words.address(2), words.milliseconds(4));
        Answer::from_result(&id.resolve_addr(source, destination, timeout))
    }

    pub(super) fn resolve_route(&self, words: &Words<'_>) -> Answer {
        let id = self.id(words.at(1));
        Answer::from_result(&id.resolve_route(words.milliseconds(2)))
    }

    pub(super) fn listen(&self, words: &Words<'_>) -> Answer {
        Answer::from_result(&self.id(words.at(1)).listen(number(words.at(2))))
    }

    pub(super) fn set_option(&self, words: &Words<'_>) -> Answer {
        let id = self.id(words.at(1));
        let value = u8::try_from(number(words.at(3))).unwrap();
        let on = value != 0;
        Answer::from_result(&match words.at(2) {
            "tos" => id.set_tos(value),
            "reuse" => id.set_reuse_addr(on),
            "afonly" => id.set_af_only(on),
            "ack_timeout" => id.set_ack_timeout(value),
            other => panic!("not an option: {other}"),
        })
    }

    pub(super) fn migrate(&self, words: &Words<'_>) -> Answer {
        let channel = self.channel(words.at(2));
        Answer::from_result(&self.id(words.at(1)).migrate(channel))
    }

    pub(super) fn local(&self, words: &Words<'_>) -> Answer {
        let id = self.id(words.at(1));
        let addresses = id.addresses().unwrap();
        let device = addresses.device.and_then(|device| self.look_up(device));
        let device = device.map_or("none".to_owned(), |device| device.name);
        Answer::ok()
            .with_address("src", addresses.source)
            .with("device", device)
            .with("port_num", addresses.port_number)
            .with_hex("ps", id.port_space().number())
            .with("qp_type", id.qp_type().number())
    }

    pub(super) fn peer(&self, words: &Words<'_>) -> Answer {
        let peer = self.id(words.at(1)).peer_addr().unwrap();
        Answer::ok().with_address("dst", peer)
    }

    pub(super) fn gids(&self, words: &Words<'_>) -> Answer {
        let id = self.id(words.at(1));
        let gids = id.gids().unwrap();
        let destination = gids.destination.unwrap_or(Gid([0; 16]));
        Answer::ok()
            .with_bytes("sgid", &gids.source.0)
            .with_bytes("dgid", &destination.0)
            .with_hex("pkey", id.addresses().unwrap().pkey)
    }

    pub(super) fn paths(&self, words: &Words<'_>) -> Answer {
        let paths = self.id(words.at(1)).path_records().unwrap();
        let mut answer = Answer::ok().with("paths", paths.len());
        for path in paths.iter().map(|path| path.record) {
            answer = answer
                .with_bytes("sgid", &path.sgid.0)
                .with_bytes("dgid", &path.dgid.0)
                .with("flow_label", path.flow_label)
                .with("hop_limit", path.hop_limit)
                .with("traffic_class", path.traffic_class)
                .with("reversible", u8::from(path.reversible))
                .with_hex("pkey", path.pkey)
                .with("sl", path.sl)
                .with("mtu", path.mtu.number())
                .with("rate", path.rate)
                .with("packet_life_time", path.packet_life_time);
        }
        answer
    }

    pub(super) fn destroy(&mut self, words: &Words<'_>) -> Answer {
        drop(self.ids.remove(words.at(1)).unwrap());
        Answer::ok()
    }
}
