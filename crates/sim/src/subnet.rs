//! The subnet administrator and its records.

use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::{IbService, PathRecord, Reserved, ServiceFlags};
use rdmacm_core::{Gid, ServiceRecord};

use crate::adapter::Port;
use crate::fabric::SubnetAdmin;

/// A subnet with its subnet administrator.
#[derive(Debug, Default)]
pub(crate) struct Subnet {
    pub(crate) services: Vec<ServiceRecord>,
    pub(crate) admin: SubnetAdmin,
    /// How long a response takes.
    pub(crate) delay: Duration,
    /// In the order of their LIDs, from 1.
    ends: Vec<Port>,
}

/// A response and when it comes.
pub(crate) type Answer<T> = (Duration, Result<T, Errno>);

/// A query for a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathQuery {
    pub(crate) from: Gid,
    pub(crate) to: Gid,
    pub(crate) pkey: u16,
    pub(crate) service_id: u64,
    pub(crate) traffic_class: u8,
}

impl Subnet {
    /// Connects a port to the subnet.
    pub(crate) fn attach(&mut self, port: Port) {
        self.ends.push(port);
    }

    /// Takes the link of a device with these ports up or down.
    pub(crate) fn set_link_up(&mut self, ports: &[Port], is_up: bool) {
        let is_meant = |end: &&mut Port| ports.iter().any(|port| port.gids == end.gids);
        for end in self.ends.iter_mut().filter(is_meant) {
            end.is_device_up = is_up;
        }
    }

    /// The records that match. None is `ENODATA`, an answer without a table
    /// (`ib_sa_service_rec_callback`, `sa_query.c`).
    pub(crate) fn services(
        &self,
        wanted: &IbService,
        timeout: Duration,
    ) -> Answer<Vec<rdmacm_abi::ServiceRecord>> {
        self.answer(timeout, || {
            let records = self.services.iter().filter(|record| fits(record, wanted));
            let records: Vec<_> = records.map(Into::into).collect();
            if records.is_empty() {
                Err(Errno::ENODATA)
            } else {
                Ok(records)
            }
        })
    }

    /// A path between two active ports of one partition; any other query is
    /// refused, which the kernel reports as `EINVAL` (`recv_handler`, `sa_query.c`). A device
    /// without a link does not reach the subnet administrator.
    pub(crate) fn path(&self, query: &PathQuery, timeout: Duration) -> Answer<PathRecord> {
        let is_unlinked = |end: &Port| !end.is_device_up && end.gids.contains(&query.from);
        if self.ends.iter().any(is_unlinked) {
            return (timeout, Err(Errno::ETIMEDOUT));
        }
        self.answer(timeout, || {
            let from = self.lid(query.from, query.pkey);
            let to = self.lid(query.to, query.pkey);
            match (from, to) {
                (Some(from), Some(to)) => Ok(path(query, from, to)),
                _ => Err(Errno::EINVAL),
            }
        })
    }

    fn answer<T>(&self, timeout: Duration, known: impl FnOnce() -> Result<T, Errno>) -> Answer<T> {
        match self.admin {
            SubnetAdmin::Silent => (timeout, Err(Errno::ETIMEDOUT)),
            _ if self.delay > timeout => (timeout, Err(Errno::ETIMEDOUT)),
            SubnetAdmin::Refuses => (self.delay, Err(Errno::EINVAL)),
            SubnetAdmin::Answers => (self.delay, known()),
        }
    }

    fn lid(&self, gid: Gid, pkey: u16) -> Option<u16> {
        let is_it =
            |end: &Port| end.is_active() && end.gids.contains(&gid) && end.is_in_partition(pkey);
        let at = self.ends.iter().position(is_it)?;
        u16::try_from(at + 1).ok()
    }
}

/// Only what the flags name is compared; without any, every record fits
/// (`cma_resolve_ib_service`, `cma.c`).
fn fits(record: &ServiceRecord, wanted: &IbService) -> bool {
    let by_id = !wanted.flags.contains(ServiceFlags::ID) || record.id == wanted.service_id;
    let name = wanted.service_name.split(|byte| *byte == 0).next();
    let by_name = !wanted.flags.contains(ServiceFlags::NAME)
        || name.is_some_and(|name| record.name.as_bytes() == name);
    by_id && by_name
}

/// Exactly 2048 bytes (4), 100 Gb/s (0x10) and 1 s (0x12).
fn path(query: &PathQuery, from: u16, to: u16) -> PathRecord {
    const EXACTLY: u8 = 2 << 6;
    PathRecord {
        service_id: query.service_id.into(),
        destination_gid: query.to.0,
        source_gid: query.from.0,
        destination_lid: to.into(),
        source_lid: from.into(),
        flow_label_hop_limit: 0.into(),
        traffic_class: query.traffic_class,
        reversible_path_count: 0x80,
        pkey: query.pkey.into(),
        qos_class_service_level: 0.into(),
        mtu_selector_mtu: EXACTLY | 0x04,
        rate_selector_rate: EXACTLY | 0x10,
        life_selector_packet_life_time: EXACTLY | 0x12,
        preference: 0,
        reserved: Reserved::ZERO,
    }
}
