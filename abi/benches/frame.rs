//! Encoding commands and decoding events.
#![expect(clippy::unwrap_used, reason = "a benchmark, whose requests are valid")]

use std::hint::black_box;

use rdmacm_abi::{
    Command, CreateId, CreateIdResponse, EventResponse, Frame, Header, PortSpace, QpType,
    ResolveAddr, SockaddrIn,
};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

fn main() {
    divan::main();
}

fn encode<C: Command>(request: &C) -> usize {
    let header = Header::of::<C>();
    let frame = Frame::<512>::new(header.as_bytes(), request.as_bytes()).unwrap();
    black_box(&frame).bytes().len()
}

#[divan::bench]
fn create_id() -> usize {
    let request = CreateId::new(black_box(1), PortSpace::TCP, QpType::RC);
    let header = Header::of::<CreateId>();
    let mut response = CreateIdResponse::new_zeroed();
    let mut frame = Frame::<64>::new(header.as_bytes(), request.as_bytes()).unwrap();
    frame.set_response(8, response.as_mut_bytes()).unwrap();
    black_box(&frame).bytes().len()
}

#[divan::bench]
fn resolve_addr() -> usize {
    let address: std::net::SocketAddrV4 = "10.71.1.1:7471".parse().unwrap();
    let destination = SockaddrIn::from(black_box(address)).into();
    encode(&ResolveAddr::new(1, None, destination, 2000))
}

#[divan::bench]
fn event(bencher: divan::Bencher<'_, '_>) {
    let bytes = [1_u8; size_of::<EventResponse>()];
    bencher.bench(|| EventResponse::read_from_bytes(black_box(&bytes)).unwrap());
}
