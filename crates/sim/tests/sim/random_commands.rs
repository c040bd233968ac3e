//! Random commands on two hosts keep to simple rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use rdmacm_abi::{
    Accept, Command, ConnParam, Connect, CreateId, CreateIdResponse, DestroyId, DestroyIdResponse,
    Disconnect, Ece, EventNumber, EventResponse, GetEvent, InitQpAttr, Listen, MigrateId, Notify,
    PortSpace, QpState, QpType, QueryAddr, QueryRoute, Reject, RejectReason, ResolveAddr,
    ResolveRoute, SockaddrStorage,
};
use rdmacm_core::ucma::{Attachment, UcmaFile, transact};
use rdmacm_sim::MessageKind;
use zerocopy::FromZeros;

use crate::pair::{Hosts, PORT};

/// An open file and what the program knows of it.
struct Program {
    files: [Arc<dyn UcmaFile>; 2],
    address: SockaddrStorage,
    peer: SockaddrStorage,
    /// The uids of living ids, by number.
    ids: BTreeMap<u32, u64>,
    used: BTreeSet<u64>,
    next_uid: u64,
}

/// The host, the file, the command, the id it may be for, and a number.
type Step = (bool, bool, u8, u8, u8);

const NO_ECE: Ece = Ece {
    vendor_id: 0,
    options: 0,
};

impl Program {
    fn new(host: &rdmacm_sim::Host, peer: &rdmacm_sim::Host) -> Self {
        let slot = |host: &rdmacm_sim::Host, port| {
            let address = std::net::SocketAddr::new(host.address().unwrap(), port);
            SockaddrStorage::from(address)
        };
        Self {
            files: [(); 2].map(|()| host.open().unwrap()),
            address: slot(host, PORT),
            peer: slot(peer, PORT),
            ids: BTreeMap::new(),
            used: BTreeSet::new(),
            next_uid: 0,
        }
    }

    fn execute<C: Command>(&self, file: usize, request: &C) -> Option<C::Response> {
        let mut response = C::Response::new_zeroed();
        let old = Attachment::OldChannel(self.files[1 - file].as_ref());
        let file = self.files[file].as_ref();
        transact(file, request, &mut response, old).ok()?;
        Some(response)
    }

    /// Executes a command that may fail.
    fn ignore<C: Command>(&self, file: usize, request: &C) {
        let _: Option<C::Response> = self.execute(file, request);
    }

    fn new_uid(&mut self) -> u64 {
        self.next_uid += 1;
        self.used.insert(self.next_uid);
        self.next_uid
    }

    fn create(&mut self, file: usize, number: u8) {
        let uid = self.new_uid();
        let port_space = match number % 4 {
            0 => PortSpace::UDP,
            _ => PortSpace::TCP,
        };
        let created: Option<CreateIdResponse> =
            self.execute(file, &CreateId::new(uid, port_space, QpType::RC));
        let id = created.unwrap().id;
        assert_eq!(self.ids.insert(id, uid), None);
    }

    fn destroy(&mut self, file: usize, id: u32) {
        let destroyed: Option<DestroyIdResponse> = self.execute(file, &DestroyId::new(id));
        if destroyed.is_some() {
            self.ids.remove(&id);
        }
    }

    fn accept(&mut self, file: usize, id: u32, param: &ConnParam) {
        let uid = self.new_uid();
        let accepted = self.execute(file, &Accept::new(uid, id, *param, NO_ECE));
        if accepted.is_some() && param.valid != 0 {
            self.ids.insert(id, uid);
        }
    }

    /// Events are only for ids that live, with their uids.
    fn read_event(&mut self, file: usize) -> bool {
        let event: Option<EventResponse> = self.execute(file, &GetEvent::new());
        let Some(event) = event else {
            return false;
        };
        if event.event == EventNumber::CONNECT_REQUEST {
            assert!(self.ids.values().any(|uid| *uid == event.uid));
            assert_eq!(self.ids.insert(event.id, 0), None);
        } else {
            assert_eq!(self.ids.get(&event.id), Some(&event.uid), "{event:?}");
        }
        true
    }

    /// A listener, and ids with routes to the other host.
    fn prepare(&mut self) {
        self.create(0, 1);
        self.ignore(0, &rdmacm_abi::Bind::new(0, self.address));
        self.ignore(0, &Listen::new(0, 3));
        for id in 1..4 {
            self.create(0, 1);
            self.ignore(0, &ResolveAddr::new(id, None, self.peer, 100));
            self.ignore(0, &ResolveRoute::new(id, 100));
        }
    }

    fn step(&mut self, file: usize, command: u8, id: u32, number: u8) {
        let param = ConnParam {
            qp_number: u32::from(number),
            valid: number & 1,
            ..ConnParam::ZERO
        };
        match command {
            0 | 1 => self.create(file, number),
            2 => self.destroy(file, id),
            3 => self.ignore(file, &rdmacm_abi::Bind::new(id, self.address)),
            4 => self.ignore(file, &Listen::new(id, u32::from(number % 4))),
            5..8 => self.ignore(file, &ResolveAddr::new(id, None, self.peer, 100)),
            8..11 => self.ignore(file, &ResolveRoute::new(id, 100)),
            11..14 => {
                let param = ConnParam { valid: 1, ..param };
                self.ignore(file, &Connect::new(id, param, NO_ECE));
            }
            14..16 => self.accept(file, id, &param),
            16 => {
                let reason = RejectReason::new(0);
                self.ignore(file, &Reject::new(id, reason, &[number]).unwrap());
            }
            17 => self.ignore(file, &Disconnect::new(id)),
            18 => self.ignore(file, &Notify::new(id, Notify::COMM_EST)),
            19 => {
                let state = QpState::new(u32::from(number % 8));
                self.ignore(file, &InitQpAttr::new(id, state));
            }
            20 => self.ignore(file, &MigrateId::new(id)),
            21 => self.ignore(file, &QueryRoute::new(id)),
            22 => self.ignore(file, &QueryAddr::new(id)),
            _ => drop(self.read_event(file)),
        }
    }
}

const COMMANDS: u8 = 30;

/// Everything that is created can be destroyed, and leaves nothing.
fn finish(programs: &mut [Program; 2]) {
    for program in programs {
        for file in 0..2 {
            while program.read_event(file) {}
        }
        let ids: Vec<_> = program.ids.keys().copied().collect();
        for id in ids {
            for file in 0..2 {
                program.destroy(file, id);
            }
        }
        assert!(program.ids.is_empty(), "{:?}", program.ids);
        for file in 0..2 {
            assert!(!program.read_event(file));
            assert_eq!(program.execute(file, &QueryAddr::new(0)), None);
        }
        // Numbers and ports are free again.
        program.create(0, 1);
        assert_eq!(program.ids.keys().next(), Some(&0));
        let bind = rdmacm_abi::Bind::new(0, program.address);
        assert!(program.execute(0, &bind).is_some());
    }
}

fn run(hosts: &Hosts, steps: &[Step]) {
    let mut programs = [
        Program::new(&hosts.client, &hosts.server),
        Program::new(&hosts.server, &hosts.client),
    ];
    for program in &mut programs {
        program.prepare();
    }
    for (host, file, command, id, number) in steps {
        let program = &mut programs[usize::from(*host)];
        let id = u32::from(*id);
        // A child that no event has announced is none of the program's.
        let id = if program.ids.contains_key(&id) {
            id
        } else {
            99
        };
        program.step(usize::from(*file), *command, id, *number);
        match number {
            200..210 => hosts.client.drop_next(MessageKind::Reply, 1),
            210..220 => hosts.server.drop_next(MessageKind::ReadyToUse, 1),
            220..230 => hosts.fabric.advance(std::time::Duration::from_secs(5)),
            _ => {}
        }
    }
    finish(&mut programs);
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        any::<bool>(),
        prop::bool::weighted(0.1),
        0..COMMANDS,
        0..8_u8,
        any::<u8>(),
    );
    prop::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn of_roce_keep_to_the_rules(steps in steps()) {
        run(&Hosts::roce(), &steps);
    }

    #[test]
    fn of_iwarp_keep_to_the_rules(steps in steps()) {
        let hosts = Hosts::iwarp();
        hosts.fabric.set_idle_time(std::time::Duration::from_micros(1));
        run(&hosts, &steps);
    }
}
