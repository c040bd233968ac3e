//! The classic loop: every address of a host by which RDMA reaches it, in the
//! order to try them.
//!
//! `cargo run --example connect_candidates -- storage-7 7471`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output")]

use std::process::ExitCode;

use rdmacm_addrinfo::{Error, Hints, resolve};
use rdmacm_core::{PortSpace, QpType};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [host, port] = arguments.as_slice() else {
        eprintln!("usage: connect_candidates HOST PORT");
        return ExitCode::from(2);
    };
    match print_candidates(host, port) {
        Ok(0) => eprintln!("RDMA reaches no address of {host}"),
        Ok(_) => return ExitCode::SUCCESS,
        Err(error) => eprintln!("{host}: {error}"),
    }
    ExitCode::FAILURE
}

fn print_candidates(host: &str, port: &str) -> Result<usize, Error> {
    let hints = Hints::new().qp_type(QpType::RC).port_space(PortSpace::TCP);
    let mut usable = 0;
    for candidate in resolve(host, port, &hints)? {
        if candidate.is_reachable() {
            println!("{candidate}");
            usable += 1;
        }
    }
    Ok(usable)
}
