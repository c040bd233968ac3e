//! Messages of ibacm, byte by byte.

use std::net::IpAddr;

use rdmacm_abi::{PathFlags, PathRecord, PathRecordData};
use rdmacm_tests::{Action, Site, acm_entry as entry};
use zerocopy::IntoBytes;

use super::question::record;

pub(super) const USABLE: u32 = PathRecordData::USABLE.bits();
pub(super) const ALTERNATE: u32 = PathFlags::ALTERNATE.bits();
pub(super) const PATH: u16 = 0x10;

/// A path, with the source address that the kernel chooses too.
pub(crate) fn known(site: &Site) -> Vec<Action> {
    send(message(&[path(USABLE), source(site.v4)]))
}

pub(super) fn refusal(status: u8) -> Vec<Action> {
    let mut refusal = message(&[]);
    (refusal[1], refusal[2]) = (0x81, status);
    send(refusal)
}

pub(super) fn send(message: Vec<u8>) -> Vec<Action> {
    vec![Action::Send(message)]
}

/// An answer that repeats the header with a status.
pub(super) fn message(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut message = vec![1, 1, 0, 0, 0, 0];
    let length = u16::try_from(16 + entries.len() * 72).unwrap();
    message.extend(length.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(entries.concat());
    message
}

pub(super) fn path(flags: u32) -> Vec<u8> {
    record_entry(flags, &record())
}

pub(super) fn record_entry(flags: u32, record: &PathRecord) -> Vec<u8> {
    entry(flags, PATH, record.as_bytes())
}

pub(super) fn source(address: impl Into<IpAddr>) -> Vec<u8> {
    ip(1, address)
}

pub(super) fn ip(flags: u32, address: impl Into<IpAddr>) -> Vec<u8> {
    match address.into() {
        IpAddr::V4(address) => entry(flags, 2, &address.octets()),
        IpAddr::V6(address) => entry(flags, 3, &address.octets()),
    }
}

pub(super) fn of_kind(kind: u16) -> Vec<u8> {
    entry(0, kind, &[])
}
