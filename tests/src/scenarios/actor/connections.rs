//! Connecting, accepting and rejecting.

use rdmacm_core::{CmId, ConnParam, Ece, Notification, QpType, Result, UdParam};

use super::Objects;
use super::answer::Answer;
use super::words::{Words, number};

impl Objects {
    pub(super) fn connect(&self, words: &Words<'_>) -> Answer {
        let id = self.id(words.at(1));
        Answer::from_result(&self.param(id, words).and_then(|param| id.connect(param)))
    }

    pub(super) fn accept(&self, words: &Words<'_>) -> Answer {
        let id = self.id(words.at(1));
        Answer::from_result(&self.param(id, words).and_then(|param| id.accept(param)))
    }

    fn param(&self, id: &CmId, words: &Words<'_>) -> Result<ConnParam> {
        let queue_pair = words.value("qp").map(|name| &self.queue_pairs[name]);
        let param = match queue_pair {
            Some(queue_pair) => ConnParam::new().with_queue_pair(queue_pair),
            None => ConnParam::new().qp_number(words.number("qpn").unwrap_or_default()),
        };
        let data = words.data();
        if id.qp_type() == QpType::UD {
            let qp_number = match queue_pair {
                Some(queue_pair) => queue_pair.number(),
                None => words.number("qpn").unwrap_or_default(),
            };
            let param = UdParam::new().qp_number(qp_number);
            return Ok(param.private_data(&data)?.into());
        }
        param
            .srq(words.flag("srq"))
            .responder_resources(words.byte("rr", 0))
            .initiator_depth(words.byte("depth", 0))
            .flow_control(words.flag("flow"))
            .retry_count(words.byte("retry", 7))
            .rnr_retry_count(words.byte("rnr", 7))
            .ece(words.value("ece").map(ece).unwrap_or_default())
            .private_data(&data)
    }

    pub(super) fn reject(&self, words: &Words<'_>) -> Answer {
        let (id, data) = (self.id(words.at(1)), words.data());
        Answer::from_result(&match words.value("because") {
            Some(_) => id.reject_ece(&data),
            None => id.reject(&data),
        })
    }

    pub(super) fn notify(&self, words: &Words<'_>) -> Answer {
        let what = match number(words.at(2)) {
            4 => Notification::CommunicationEstablished,
            6 => Notification::PathMigrated,
            other => panic!("not a notification: {other}"),
        };
        Answer::from_result(&self.id(words.at(1)).notify(what))
    }
}

fn ece(word: &str) -> Ece {
    let (vendor_id, options) = word.split_once(':').unwrap();
    Ece {
        vendor_id: number(vendor_id),
        options: number(options),
    }
}
