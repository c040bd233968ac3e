//! The actor that uses this library: each command is one call of the core, and answers
//! have the format of the actor in `tests/c/actor`.

use std::collections::HashMap;
use std::mem;

use nix::unistd::{Uid, setuid};
use rdmacm_core::{
    CmAddr, CmId, DeviceId, EventChannel, IdHandle, MulticastGroup, RdmaDevice, Result,
};
use rdmacm_verbs::{DeviceSource, QueuePair, SystemDeviceSource};

mod answer;
mod connections;
mod events;
mod groups;
mod ids;
mod queue_pairs;
mod words;

use super::{Actor, DEAD, DIE, RESET, UNPRIVILEGED};
use answer::Answer;
use words::Words;

/// The user of an unprivileged process.
const NOBODY: Uid = Uid::from_raw(65_534);

/// Where an actor opens channels and devices.
pub trait Machine {
    /// Opens an event channel.
    ///
    /// # Errors
    /// Those of [`EventChannel::open`].
    fn open_channel(&self) -> Result<EventChannel>;

    /// Its RDMA devices.
    fn devices(&self) -> &dyn DeviceSource;
}

/// The machine that this process runs on.
#[derive(Clone, Copy, Debug)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn open_channel(&self) -> Result<EventChannel> {
        EventChannel::open()
    }

    fn devices(&self) -> &dyn DeviceSource {
        &SystemDeviceSource
    }
}

/// An actor that uses this library in the current process.
#[derive(Debug)]
pub struct LibraryActor<M> {
    machine: M,
    objects: Objects,
    command: String,
    is_dead: bool,
}

impl<M: Machine> LibraryActor<M> {
    /// Without objects yet.
    pub fn new(machine: M) -> Self {
        Self {
            machine,
            objects: Objects::default(),
            command: String::new(),
            is_dead: false,
        }
    }
}

impl<M: Machine> Actor for LibraryActor<M> {
    /// The death of an actor destroys its objects, as the kernel does for a process.
    fn send(&mut self, command: &str) {
        if command == DIE {
            self.objects = Objects::default();
            self.is_dead = true;
        }
        command.clone_into(&mut self.command);
    }

    fn answer(&mut self) -> Result<Vec<String>, String> {
        if self.is_dead {
            return Ok(vec![DEAD.to_owned()]);
        }
        let command = mem::take(&mut self.command);
        let answer = self.objects.execute(&self.machine, &Words::of(&command));
        Ok(answer.into_lines())
    }
}

/// The objects that commands have created, by name. They are dropped in this order,
/// dependent ones first.
#[derive(Debug, Default)]
struct Objects {
    groups: HashMap<String, Group>,
    ids: HashMap<String, CmId>,
    queue_pairs: HashMap<String, QueuePair>,
    channels: HashMap<String, EventChannel>,
}

/// A group that was joined, or whose join was refused.
#[derive(Debug)]
struct Group {
    address: CmAddr,
    membership: Option<MulticastGroup>,
}

impl Objects {
    fn execute(&mut self, machine: &dyn Machine, words: &Words<'_>) -> Answer {
        match words.at(0) {
            "channel" => self.make_channel(machine, words),
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
            "qp" => self.make_queue_pair(machine, words),
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
            RESET => {
                *self = Self::default();
                Answer::ok()
            }
            UNPRIVILEGED => {
                setuid(NOBODY).unwrap();
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

    /// The device as a channel of the machine lists it.
    fn look_up(&self, device: DeviceId) -> Option<RdmaDevice> {
        self.channels.values().next()?.look_up(device)
    }

    fn name_of(&self, id: &IdHandle) -> &str {
        let found = self.ids.iter().find(|(_, known)| *id == **known);
        found.map(|(name, _)| name.as_str()).unwrap()
    }
}
