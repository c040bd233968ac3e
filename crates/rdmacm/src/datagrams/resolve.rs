//! Resolving a peer to the address of its datagrams (SIDR).

use std::sync::Arc;

use rdmacm_addrinfo::AddrInfoResolver;
use rdmacm_core::{CmAddr, ConnParam, Deadline, EventKind, UdParam};

use super::address::DatagramPeer;
use super::config::DatagramConfig;
use crate::attempt::Attempt;
use crate::connect::{
    ConnectAttempts, ConnectConfig, ConnectTarget, PeerAddr, SourceAddress, resolve, wait_for_event,
};
use crate::error::{Cause, Result};
use crate::event_loop::EventLoop;
use crate::stage::Stage;

/// A peer that replied, and the local address of the request.
pub(crate) struct ResolvedPeer {
    pub(crate) peer: DatagramPeer,
    pub(crate) source: Option<CmAddr>,
}

/// Resolves the first of a peer's addresses that replies.
pub(crate) async fn resolve_peer(
    event_loop: &Arc<EventLoop>,
    resolver: &AddrInfoResolver,
    peer: &PeerAddr,
    config: &DatagramConfig,
    source: Option<CmAddr>,
    deadline: Deadline,
) -> Result<ResolvedPeer> {
    let connect = ConnectConfig {
        options: config.id,
        source: source.map_or(SourceAddress::ByRoute, SourceAddress::Address),
        deadline,
        retry: config.retry,
        ..ConnectConfig::default()
    };
    let attempts = ConnectAttempts {
        event_loop,
        resolver,
        peer: &peer.0,
        config: &connect,
    };
    let request = &config.request;
    attempts
        .first(|attempt, target| resolve_one(attempt, &connect, target, request))
        .await
}

/// Resolves address and route, and sends the request.
async fn resolve_one(
    attempt: Attempt,
    config: &ConnectConfig,
    target: ConnectTarget,
    request: &UdParam,
) -> Result<ResolvedPeer> {
    let stage = Stage::Connect;
    let routed = resolve(&attempt, config, &target).await?;
    let id = routed.id.id();
    let param = ConnParam::from(request).private_data_behind(&routed.connect_data);
    param
        .and_then(|param| id.connect(param))
        .map_err(|error| attempt.fail_on(id, stage, error))?;
    let reply = wait_for_event(&attempt, &routed.id, stage, EventKind::Established).await?;
    let addr = reply
        .ud()
        .ok_or_else(|| attempt.fail_on(id, stage, Cause::PeerGone))?;
    let source = id.local_addr();
    Ok(ResolvedPeer {
        peer: DatagramPeer {
            addr: addr.into(),
            private_data: reply.private_data().to_vec(),
        },
        source: source.map_err(|error| attempt.fail_on(id, stage, error))?,
    })
}
