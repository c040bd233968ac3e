//! The actor that uses this library: each command is one call of the core, and answers
//! have the format of the actor in `tests/c/actor`.

use std::collections::HashMap;
use std::io::{BufRead as _, Write as _};

use nix::unistd::{Uid, setuid};
use rdmacm_core::{CmAddr, CmId, Error, EventChannel, IdHandle, MulticastGroup, Result};
use rdmacm_verbs::QueuePair;

mod answer;
mod connections;
mod events;
mod groups;
mod ids;
mod queue_pairs;
mod words;

use answer::Answer;
use words::Words;

const UNPRIVILEGED: Uid = Uid::from_raw(65_534);

/// Executes the commands of the standard input until it ends.
pub(crate) fn run() {
    let mut objects = Objects::default();
    let mut output = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let answer = objects.execute(&Words::of(&line));
        writeln!(output, "{answer}.").unwrap();
        output.flush().unwrap();
    }
}

/// The objects that commands have created, by name. They are dropped in this order,
/// dependent ones first.
#[derive(Default)]
struct Objects {
    groups: HashMap<String, Group>,
    ids: HashMap<String, CmId>,
    queue_pairs: HashMap<String, QueuePair>,
    channels: HashMap<String, EventChannel>,
}

/// A group that was joined, or whose join was refused.
struct Group {
    address: CmAddr,
    membership: Option<MulticastGroup>,
}

impl Objects {
    fn execute(&mut self, words: &Words<'_>) -> Answer {
        match words.at(0) {
            "channel" => self.make_channel(words),
            "id" => self.make_id(words),
            "bind" => self.bind(words),
            "resolve_addr" => self.resolve_addr(words),
            "resolve_route" => self.resolve_route(words),
            "listen" => self.listen(words),
            "option" => self.set_option(words),
            "migrate" => self.migrate(words),
            "local" => self.local(words),
            "peer" => self.peer(words),
            "gids" => self.gids(words),
            "paths" => self.paths(words),
            "destroy" => self.destroy(words),
            "qp" => self.make_queue_pair(words),
            "init_qp_attr" => self.init_qp_attr(words),
            "modify" => self.modify(words),
            "connect" => self.connect(words),
            "accept" => self.accept(words),
            "reject" => self.reject(words),
            "establish" => Answer::from_result(&self.id(words.at(1)).establish()),
            "disconnect" => Answer::from_result(&self.id(words.at(1)).disconnect()),
            "notify" => self.notify(words),
            "join" => self.join(words),
            "leave" => self.leave(words),
            "event" => self.next_event(words),
            "no_event" => self.no_event(words),
            "waiting" => self.wait_for_event(words),
            "reset" => {
                *self = Self::default();
                Answer::ok()
            }
            "unprivileged" => {
                setuid(UNPRIVILEGED).unwrap();
                Answer::ok()
            }
            unknown => panic!("unknown command: {unknown}"),
        }
    }

    fn id(&self, name: &str) -> &CmId {
        &self.ids[name]
    }

    fn channel(&self, name: &str) -> &EventChannel {
        &self.channels[name]
    }

    fn name_of(&self, id: &IdHandle) -> &str {
        let found = self.ids.iter().find(|(_, known)| *id == **known);
        found.map(|(name, _)| name.as_str()).unwrap()
    }
}
