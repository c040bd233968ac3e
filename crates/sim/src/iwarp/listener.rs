//! Listening on TCP ports.

use nix::errno::Errno;
use rdmacm_abi::AddressFamily;
use rdmacm_core::Transport;

use crate::address::Address;
use crate::host_state::HostState;
use crate::id::{Attached, Id, State};
use crate::network::Arrival;

/// Whether siw can listen for an id: it wants a TCP port of that number on each of
/// its devices.
pub(crate) fn check_listen(host: &HostState, id: &Id) -> Result<(), Errno> {
    let is_meant = |device: usize| {
        let on_device = |attached: Attached| attached.device == device;
        id.attached.is_none_or(on_device)
    };
    let devices = host.present_devices();
    let count = devices
        .filter(|(index, device)| device.transport == Transport::IWarp && is_meant(*index))
        .count();
    let Some(source) = id.source else {
        return Ok(());
    };
    let is_taken = host.tcp_ports.contains(&source.port());
    // The loopback address is the same on each device.
    let is_loopback = source.ip().is_some_and(|address| address.is_loopback());
    if count > 0 && is_taken || count > 1 && is_loopback {
        return Err(Errno::EADDRINUSE);
    }
    Ok(())
}

/// The listener whose TCP socket takes a connection to this address.
pub(super) fn find(host: &HostState, arrival: Arrival, destination: Address) -> Option<u32> {
    let on_device = |attached: Attached| attached.device == arrival.attached.device;
    let takes = |id: &Id| {
        let Some(own) = id.source else {
            return false;
        };
        let is_family = own.family() == destination.family()
            // TCP's wildcard of IPv6 takes IPv4 as well.
            || own.family() == AddressFamily::INET6 && !id.options.af_only;
        id.state == State::Listen
            && id.attached.is_none_or(on_device)
            && own.port() == destination.port()
            && is_family
            && (own.is_unspecified() || own.is_same_host(&destination))
    };
    let found = host.ids.iter().find(|(_, id)| takes(id));
    found.map(|(number, _)| *number)
}
