//! The system's name resolver, `getaddrinfo(3)`.
//!
//! # Safety
//! The only module of this crate with `unsafe`: it calls into the C library and
//! reads the list that comes back.
#![expect(unsafe_code, reason = "getaddrinfo hands out a list of raw pointers")]

use std::ffi::{CStr, CString};
use std::io;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ptr;

use rdmacm_core::Family;

use super::name_resolver::{Host, HostQuery, NameResolver, ServiceKind};
use crate::error::NameError;

/// The system's own name resolver: `getaddrinfo(3)`, and with it `hosts(5)`,
/// `services(5)`, the name servers of `resolv.conf(5)` and whatever else
/// `nsswitch.conf(5)` names.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn host(&self, query: &HostQuery<'_>) -> Result<Host, NameError> {
        ask_host(query.name, query.family, query.canonical_name)
    }

    fn service(&self, name: &str, kind: ServiceKind) -> Result<u16, NameError> {
        let service = text(name)?;
        let list = List::get(None, Some(&service), &hints(None, kind, 0))?;
        let port = list.iter().find_map(socket_addr).map(|found| found.port());
        port.ok_or(NameError::Service)
    }
}

/// Parses a numeric address in any form that the C library accepts, without reading
/// files or asking servers.
pub(super) fn numeric(node: &str, family: Option<Family>) -> Result<Host, NameError> {
    let hints = hints(family, ServiceKind::Stream, libc::AI_NUMERICHOST);
    Ok(host(&List::get(Some(&text(node)?), None, &hints)?))
}

fn ask_host(node: &str, family: Option<Family>, canonical: bool) -> Result<Host, NameError> {
    let flags = if canonical { libc::AI_CANONNAME } else { 0 };
    let hints = hints(family, ServiceKind::Stream, flags);
    Ok(host(&List::get(Some(&text(node)?), None, &hints)?))
}

/// The system's result without a node.
#[cfg(test)]
pub(super) fn without_node(
    passive: bool,
    family: Option<Family>,
    port: u16,
) -> Result<Vec<SocketAddr>, NameError> {
    let flags = if passive { libc::AI_PASSIVE } else { 0 };
    let hints = hints(family, ServiceKind::Stream, flags);
    let list = List::get(None, Some(&text(&port.to_string())?), &hints)?;
    Ok(list.iter().filter_map(socket_addr).collect())
}

fn host(list: &List) -> Host {
    Host {
        addresses: list.iter().filter_map(socket_addr).collect(),
        canonical_name: list.iter().find_map(canonical_name),
    }
}

fn text(text: &str) -> Result<CString, NameError> {
    CString::new(text).map_err(|_| NameError::NoName)
}

/// The list `getaddrinfo(3)` gives, freed when dropped.
struct List(*mut libc::addrinfo);

impl List {
    fn get(
        node: Option<&CStr>,
        service: Option<&CStr>,
        hints: &libc::addrinfo,
    ) -> Result<Self, NameError> {
        let mut list = ptr::null_mut();
        // SAFETY: node and service are NUL-terminated strings or null, the hints
        // are fully initialised, and `list` can hold one pointer; all of
        // them outlive the call.
        let code =
            unsafe { libc::getaddrinfo(pointer(node), pointer(service), hints, &raw mut list) };
        match code {
            0 => Ok(Self(list)),
            libc::EAI_SYSTEM => Err(NameError::System(
                io::Error::last_os_error().raw_os_error().unwrap_or(0),
            )),
            code => Err(NameError::from_code(code)),
        }
    }

    fn iter(&self) -> Entries<'_> {
        Entries {
            next: self.0,
            list: PhantomData,
        }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a getaddrinfo that succeeded and is
        // freed once; entries borrow the list.
        unsafe { libc::freeaddrinfo(self.0) };
    }
}

struct Entries<'list> {
    next: *const libc::addrinfo,
    list: PhantomData<&'list List>,
}

impl<'list> Iterator for Entries<'list> {
    type Item = &'list libc::addrinfo;

    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: the pointer is null or an entry of a list that getaddrinfo
        // made, initialised, and unchanged and alive while `'list` is borrowed.
        let entry = unsafe { self.next.as_ref() }?;
        self.next = entry.ai_next;
        Some(entry)
    }
}

fn pointer(text: Option<&CStr>) -> *const libc::c_char {
    text.map_or(ptr::null(), CStr::as_ptr)
}

/// A socket type keeps each address from being listed once for each.
fn hints(family: Option<Family>, kind: ServiceKind, flags: libc::c_int) -> libc::addrinfo {
    let (ai_socktype, ai_protocol) = match kind {
        ServiceKind::Stream => (libc::SOCK_STREAM, libc::IPPROTO_TCP),
        ServiceKind::Datagram => (libc::SOCK_DGRAM, libc::IPPROTO_UDP),
    };
    libc::addrinfo {
        ai_flags: flags,
        ai_family: match family {
            Some(Family::V4) => libc::AF_INET,
            Some(Family::V6) => libc::AF_INET6,
            _ => libc::AF_UNSPEC,
        },
        ai_socktype,
        ai_protocol,
        ai_addrlen: 0,
        ai_addr: ptr::null_mut(),
        ai_canonname: ptr::null_mut(),
        ai_next: ptr::null_mut(),
    }
}

fn canonical_name(entry: &libc::addrinfo) -> Option<String> {
    if entry.ai_canonname.is_null() {
        return None;
    }
    // SAFETY: not null, so it is a NUL-terminated string of the list's.
    let name = unsafe { CStr::from_ptr(entry.ai_canonname) };
    Some(name.to_string_lossy().into_owned())
}

/// The entry's address; `None` for a family that is not IP's.
fn socket_addr(entry: &libc::addrinfo) -> Option<SocketAddr> {
    let length = usize::try_from(entry.ai_addrlen).ok()?;
    if entry.ai_addr.is_null() {
        return None;
    }
    match entry.ai_family {
        libc::AF_INET if length >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: not null, of this family and long enough: a sockaddr_in of
            // the list's; read unaligned because its type promises less.
            let v4 = unsafe { entry.ai_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 if length >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above, a sockaddr_in6.
            let v6 = unsafe { entry.ai_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            // std keeps the flow information as it is in memory.
            Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}
