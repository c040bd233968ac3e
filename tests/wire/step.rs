//! Steps, carried out.

use std::io;
use std::net::SocketAddr;
use std::process::Command;

use rdmacm_abi::{
    Accept, Bind, ConnParam, Connect, CreateId, DestroyId, Disconnect, Ece, Listen, PortSpace,
    QpType, Reject, RejectReason, ResolveAddr, ResolveRoute, SockaddrStorage,
};
use rdmacm_core::CmAddr;
use rdmacm_init::{Answer, Step};

use crate::Side;

/// Longer than the kernel needs for a route, which it makes without asking.
const ROUTE_TIMEOUT_MS: u32 = 10_000;

/// Carries one out, as long as that takes.
pub(crate) fn carry_out(side: &Side, step: Step) -> Answer {
    let device = &side.device;
    let done = match step {
        Step::Run { line } => return run(&line),
        Step::QueuePair { device } => return Answer::Made(side.queue_pairs.make(&device)),
        Step::Create { uid } => {
            let create = CreateId::new(uid, PortSpace::TCP, QpType::RC);
            return match device.ask(&create) {
                Ok(created) => Answer::Made(created.id),
                Err(error) => refused(&error),
            };
        }
        Step::Bind { id, address } => device.tell(&Bind::new(id, storage(address))),
        Step::Listen { id } => device.tell(&Listen::new(id, 0)),
        Step::ResolveAddr {
            id,
            address,
            timeout_ms,
        } => device.tell(&ResolveAddr::new(id, None, storage(address), timeout_ms)),
        Step::ResolveRoute { id } => device.tell(&ResolveRoute::new(id, ROUTE_TIMEOUT_MS)),
        Step::Connect {
            id,
            qp_number,
            data,
        } => device.tell(&Connect::new(id, param(qp_number, &data), Ece::default())),
        Step::Accept {
            id,
            uid,
            qp_number,
            data,
        } => {
            let param = param(qp_number, &data);
            device.tell(&Accept::new(uid, id, param, Ece::default()))
        }
        Step::ReadyToUse { id } => device.tell(&Accept::ready_to_use(id)),
        Step::Reject { id, data } => {
            let reason = RejectReason::CONSUMER_DEFINED;
            device.tell(&Reject::new(id, reason, data.as_bytes()).unwrap())
        }
        Step::Disconnect { id } => device.tell(&Disconnect::new(id)),
        Step::Destroy { id } => device.ask(&DestroyId::new(id)).map(drop),
    };
    match done {
        Ok(()) => Answer::Done,
        Err(error) => refused(&error),
    }
}

fn refused(error: &io::Error) -> Answer {
    match error.raw_os_error() {
        Some(errno) => Answer::Refused(errno),
        None => Answer::Failed(error.to_string()),
    }
}

fn storage(address: SocketAddr) -> SockaddrStorage {
    CmAddr::from(address).socket_addr().unwrap().into()
}

fn param(qp_number: u32, data: &str) -> ConnParam {
    let param = ConnParam {
        retry_count: 7,
        rnr_retry_count: 7,
        ..ConnParam::new(qp_number)
    };
    param.with_private_data(data.as_bytes()).unwrap()
}

fn run(line: &str) -> Answer {
    let output = Command::new("/bin/sh").args(["-c", line]).output();
    match output {
        Ok(output) if output.status.success() => Answer::Done,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Answer::Failed(format!("{}: {}", output.status, said.trim()))
        }
        Err(error) => Answer::Failed(error.to_string()),
    }
}
