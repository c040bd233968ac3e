//! Multicast groups.

use rdmacm_core::{CmAddr, JoinFlags};

use super::answer::Answer;
use super::words::{Words, ip};
use super::{Group, Objects};

impl Objects {
    pub(super) fn join(&mut self, words: &Words<'_>) -> Answer {
        let flags = match words.get(4) {
            Some("send_only") => JoinFlags::SEND_ONLY_FULL_MEMBER,
            _ => JoinFlags::FULL_MEMBER,
        };
        let address = CmAddr::from((ip(words.at(2)), 0));
        let joined = self.id(words.at(1)).join_multicast(address, flags);
        let answer = Answer::from_result(&joined);
        let membership = joined.ok();
        let group = Group {
            address,
            membership,
        };
        self.groups.insert(words.at(3).to_owned(), group);
        answer
    }

    pub(super) fn leave(&self, words: &Words<'_>) -> Answer {
        let address = self.groups[words.at(2)].address;
        Answer::from_result(&self.id(words.at(1)).leave_multicast(address))
    }
}
