//! The system calls of a resolution, counted with strace.

use std::net::IpAddr;
use std::process::Command;

use rdmacm_core::CommandNumber;
use rdmacm_tests::Site;

use crate::command::built;
use rdmacm_tests_macros::case;

mod strace;

use strace::{Call, read};

#[case(needs(Strace))]
fn at_most_10_commands_for_a_numeric_destination(site: &Site) {
    for ip in site.ips() {
        let commands = commands(&resolution(ip, &[]));
        assert!((1..=10).contains(&commands.len()), "{commands:?}");
    }
}

#[case(needs(Strace))]
fn at_most_40_calls_until_the_answer(site: &Site) {
    for ip in site.ips() {
        let calls = resolution(ip, &[]);
        let counted = from_rdma_to_the_answer(&calls).iter();
        // The C library reads the time with a system call if the clock is HPET, as in
        // an emulated guest.
        let counted: Vec<_> = counted
            .filter(|call| call.name != "clock_gettime")
            .collect();
        assert!((10..=40).contains(&counted.len()), "{counted:#?}");
    }
}

#[case(needs(Strace))]
fn no_name_is_looked_up(site: &Site) {
    let calls = resolution(site.v4.into(), &[]);
    let asked = calls.iter().find(|call| call.mentions("/etc/hosts"));
    assert_eq!(asked.map(Call::to_string), None);
    assert!(!calls.iter().any(|call| call.name.starts_with("clone")));
}

#[case(needs(Strace))]
fn no_route_is_asked_for_when_routes_are_left_out(site: &Site) {
    let with = commands(&resolution(site.v4.into(), &[]));
    assert!(with.contains(&CommandNumber::RESOLVE_ROUTE));
    let without = commands(&resolution(site.v4.into(), &["--no-route"]));
    assert!(!without.contains(&CommandNumber::RESOLVE_ROUTE));
}

/// The calls of one successful resolution by the command.
fn resolution(ip: IpAddr, more: &[&str]) -> Vec<Call> {
    let output = Command::new("strace")
        // All threads; names of descriptors; bytes of commands in hexadecimal.
        .args(["-f", "-y", "-x", "-o", "/proc/self/fd/2"])
        .arg(built("rdmacm"))
        .args(["resolve", &ip.to_string(), "7471", "--numeric"])
        .args(more)
        .output()
        .unwrap();
    let trace = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{trace}");
    read(&trace)
}

/// The commands written to the connection manager, without reads that found no event.
fn commands(calls: &[Call]) -> Vec<CommandNumber> {
    calls
        .iter()
        .filter(|call| call.is_command() && !call.mentions("EAGAIN"))
        .map(Call::command_number)
        .collect()
}

/// From the first call about RDMA to the write of the output.
fn from_rdma_to_the_answer(calls: &[Call]) -> &[Call] {
    let first = calls.iter().position(Call::touches_rdma).unwrap();
    let answer = calls.iter().position(Call::is_answer).unwrap();
    &calls[first..=answer]
}
