//! Executes steps.

use std::io;
use std::net::SocketAddr;
use std::process::Command;

use rdmacm_abi::{
    Accept, Bind, ConnParam, Connect, CreateId, DestroyId, Disconnect, Ece, Listen, PortSpace,
    QpType, Reject, RejectReason, ResolveAddr, ResolveRoute, SockaddrStorage,
};
use rdmacm_core::CmAddr;
use rdmacm_init::{Answer, Step};

use crate::Server;

/// Longer than the kernel needs for a route of RoCE or iWARP, which needs no query.
const ROUTE_TIMEOUT_MS: u32 = 10_000;

/// Executes a step and returns its answer. May block.
pub(crate) fn execute(server: &Server, step: Step) -> Answer {
    let device = &server.device;
    let result = match step {
        Step::Run { line } => return run_shell(&line),
        Step::QueuePair { device } => return Answer::Created(server.queue_pairs.create(&device)),
        Step::Create { uid } => {
            let create = CreateId::new(uid, PortSpace::TCP, QpType::RC);
            return match device.execute_with_response(&create) {
                Ok(created) => Answer::Created(created.id),
                Err(error) => error_answer(&error),
            };
        }
        Step::Bind { id, address } => device.execute(&Bind::new(id, storage(address))),
        Step::Listen { id } => device.execute(&Listen::new(id, 0)),
        Step::ResolveAddr {
            id,
            address,
            timeout_ms,
        } => device.execute(&ResolveAddr::new(id, None, storage(address), timeout_ms)),
        Step::ResolveRoute { id } => device.execute(&ResolveRoute::new(id, ROUTE_TIMEOUT_MS)),
        Step::Connect {
            id,
            qp_number,
            data,
        } => device.execute(&Connect::new(id, param(qp_number, &data), Ece::default())),
        Step::Accept {
            id,
            uid,
            qp_number,
            data,
        } => {
            let param = param(qp_number, &data);
            device.execute(&Accept::new(uid, id, param, Ece::default()))
        }
        Step::ReadyToUse { id } => device.execute(&Accept::ready_to_use(id)),
        Step::Reject { id, data } => {
            let reason = RejectReason::CONSUMER_DEFINED;
            device.execute(&Reject::new(id, reason, data.as_bytes()).unwrap())
        }
        Step::Disconnect { id } => device.execute(&Disconnect::new(id)),
        Step::Destroy { id } => device.execute_with_response(&DestroyId::new(id)).map(drop),
    };
    match result {
        Ok(()) => Answer::Done,
        Err(error) => error_answer(&error),
    }
}

fn error_answer(error: &io::Error) -> Answer {
    match error.raw_os_error() {
        Some(errno) => Answer::Errno(errno),
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

fn run_shell(line: &str) -> Answer {
    let output = Command::new("/bin/sh").args(["-c", line]).output();
    match output {
        Ok(output) if output.status.success() => Answer::Done,
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            Answer::Failed(format!("{}: {}", output.status, stderr.trim()))
        }
        Err(error) => Answer::Failed(error.to_string()),
    }
}
