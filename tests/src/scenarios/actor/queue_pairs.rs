//! Queue pairs, and their attributes by an id.

use rdmacm_core::QpState;
use rdmacm_verbs::QueuePair;

use super::answer::Answer;
use super::words::Words;
use super::{Machine, Objects};

impl Objects {
    pub(super) fn make_queue_pair(&mut self, machine: &dyn Machine, words: &Words<'_>) -> Answer {
        let id = self.id(words.at(1));
        let device = id.addresses().unwrap().device.unwrap();
        let context = machine.devices().open(device).unwrap();
        let queue_pair = QueuePair::options(id.qp_type()).create(&context).unwrap();
        let answer = Answer::ok().with("qp_num", queue_pair.number());
        self.queue_pairs.insert(words.at(2).to_owned(), queue_pair);
        answer
    }

    pub(super) fn init_qp_attr(&self, words: &Words<'_>) -> Answer {
        match self.id(words.at(1)).init_qp_attr(state(words.at(2))) {
            Err(error) => Answer::failed(&error),
            Ok(attr) => Answer::ok()
                .with_hex("mask", attr.mask.bits())
                .with_hex("access", attr.access_flags.bits())
                .with("path_mtu", attr.path_mtu.number())
                .with("path_mig_state", attr.path_migration_state)
                .with_hex("qkey", attr.qkey)
                .with("rq_psn", attr.rq_psn)
                .with("sq_psn", attr.sq_psn)
                .with("dest_qp_num", attr.destination_qp_number)
                .with_ah("", &attr.ah_attr)
                .with_ah("alt_", &attr.alternate_ah_attr)
                .with("pkey_index", attr.pkey_index)
                .with("alt_pkey_index", attr.alternate_pkey_index)
                .with("max_rd_atomic", attr.max_rd_atomic)
                .with("max_dest_rd_atomic", attr.max_destination_rd_atomic)
                .with("min_rnr_timer", attr.min_rnr_timer)
                .with("port_num", attr.port_number)
                .with("timeout", attr.timeout)
                .with("retry_cnt", attr.retry_count)
                .with("rnr_retry", attr.rnr_retry)
                .with("alt_port_num", attr.alternate_port_number)
                .with("alt_timeout", attr.alternate_timeout),
        }
    }

    pub(super) fn modify(&self, words: &Words<'_>) -> Answer {
        let queue_pair = &self.queue_pairs[words.at(1)];
        match self.id(words.at(2)).init_qp_attr(state(words.at(3))) {
            Err(error) => Answer::failed(&error),
            Ok(attr) => match queue_pair.modify(&attr, attr.mask) {
                Ok(()) => Answer::ok(),
                Err(error) => Answer::refusal(error.raw_os_error()),
            },
        }
    }
}

fn state(word: &str) -> QpState {
    match word {
        "RESET" => QpState::RESET,
        "INIT" => QpState::INIT,
        "RTR" => QpState::RTR,
        "RTS" => QpState::RTS,
        "SQD" => QpState::SQD,
        "SQE" => QpState::SQE,
        "ERR" => QpState::ERR,
        other => panic!("not a state: {other}"),
    }
}
