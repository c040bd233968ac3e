//! Two queue pairs that are connected by hand, and what it takes to make them.

use rdmacm_core::{
    AccessFlags, AhAttr, DeviceId, Gid, GlobalRoute, PathMtu, QpAttr, QpAttrMask, QpState, QpType,
    RdmaDevices,
};
use rdmacm_sim::{Fabric, Host, KernelVersion};
use rdmacm_verbs::{
    Completion, CompletionInfo, CompletionQueue, Context, DeviceSource, QueuePair, SendOperation,
    SendRequest, Sge, WcStatus,
};
use zerocopy::FromZeros;

pub(crate) const REMOTE: AccessFlags = AccessFlags::LOCAL_WRITE
    .union(AccessFlags::REMOTE_WRITE)
    .union(AccessFlags::REMOTE_READ)
    .union(AccessFlags::REMOTE_ATOMIC);
/// About 67 ms.
pub(crate) const TIMEOUT: u8 = 14;

/// Two queue pairs that are connected to each other.
pub(crate) struct Connected {
    pub(crate) fabric: Fabric,
    pub(crate) here: Host,
    pub(crate) there: Host,
    pub(crate) near: QueuePair,
    pub(crate) far: QueuePair,
}

impl Connected {
    pub(crate) fn new() -> Self {
        Self::on(KernelVersion::default())
    }

    /// Both hosts have this kernel.
    pub(crate) fn on(kernel: KernelVersion) -> Self {
        let fabric = Fabric::roce(["here", "there"]).seed(7);
        let [here, there] =
            ["here", "there"].map(|name| fabric.find_host(name).unwrap().kernel_version(kernel));
        let [near, far] = [&here, &there].map(create);
        connect(&near, &far, &there);
        connect(&far, &near, &here);
        Self {
            fabric,
            here,
            there,
            near,
            far,
        }
    }

    pub(crate) fn post_receive(&self) {
        let room = self.far.protection_domain().allocate(64).unwrap();
        self.far.post_receive(room).unwrap();
    }

    pub(crate) fn send(&self, bytes: &[u8]) {
        let memory = self.near.protection_domain().register(bytes).unwrap();
        self.near
            .post_send(SendRequest::new(SendOperation::Send, memory))
            .unwrap();
    }

    pub(crate) fn start(&self, operation: SendOperation, bytes: &[u8]) {
        let domain = self.near.protection_domain();
        let mut memory = domain.allocate(bytes.len()).unwrap();
        memory.copy_from_slice(bytes);
        let request = SendRequest::new(operation, memory);
        self.near.post_send(request).unwrap();
    }

    pub(crate) fn start_with(&self, operation: SendOperation, memory: Sge) {
        let request = SendRequest::new(operation, memory);
        self.near.post_send(request).unwrap();
    }

    pub(crate) fn sent(&self) -> Completion {
        poll(self.near.send_cq()).unwrap()
    }

    pub(crate) fn received(&self) -> Completion {
        poll(self.far.recv_cq()).unwrap()
    }
}

pub(crate) fn device(host: &Host) -> DeviceId {
    let devices = host.list().unwrap();
    DeviceId {
        index: devices[0].index,
        guid: devices[0].guid,
    }
}

pub(crate) fn open(host: &Host) -> Context {
    DeviceSource::open(host, device(host)).unwrap()
}

pub(crate) fn create(host: &Host) -> QueuePair {
    let options = QueuePair::options(QpType::RC).with_completion_channels();
    options.create(&open(host)).unwrap()
}

/// The attributes of the moves to INIT, RTR and RTS.
pub(crate) const INIT: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::PKEY_INDEX)
    .union(QpAttrMask::PORT)
    .union(QpAttrMask::ACCESS_FLAGS);
pub(crate) const RTR: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::AV)
    .union(QpAttrMask::PATH_MTU)
    .union(QpAttrMask::DEST_QPN)
    .union(QpAttrMask::RQ_PSN)
    .union(QpAttrMask::MAX_DEST_RD_ATOMIC)
    .union(QpAttrMask::MIN_RNR_TIMER);
pub(crate) const RTS: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::TIMEOUT)
    .union(QpAttrMask::RETRY_CNT)
    .union(QpAttrMask::RNR_RETRY)
    .union(QpAttrMask::MAX_QP_RD_ATOMIC)
    .union(QpAttrMask::SQ_PSN);

/// Attributes for any state, with the queue pair of this number and host as the peer.
pub(crate) fn attributes(state: QpState, peer: u32, host: &Host) -> QpAttr {
    QpAttr {
        qp_state: state,
        port_number: 1,
        access_flags: REMOTE,
        path_mtu: PathMtu::B1024,
        destination_qp_number: peer,
        min_rnr_timer: 12,
        timeout: TIMEOUT,
        max_rd_atomic: 4,
        max_destination_rd_atomic: 4,
        retry_count: 6,
        rnr_retry: 2,
        ah_attr: AhAttr {
            grh: GlobalRoute {
                destination_gid: gid(host).0,
                source_gid_index: 1,
                ..GlobalRoute::default()
            },
            is_global: 1,
            port_number: 1,
            ..AhAttr::default()
        },
        ..QpAttr::new_zeroed()
    }
}

/// Moves a queue pair to RTS, with this peer.
pub(crate) fn connect(queue_pair: &QueuePair, peer: &QueuePair, host: &Host) {
    for (state, mask) in [
        (QpState::INIT, INIT),
        (QpState::RTR, RTR),
        (QpState::RTS, RTS),
    ] {
        let attr = attributes(state, peer.number(), host);
        queue_pair.modify(&attr, mask).unwrap();
    }
}

pub(crate) fn gid(host: &Host) -> Gid {
    let std::net::IpAddr::V4(address) = host.address().unwrap() else {
        panic!("the first address is of IPv4");
    };
    Gid(address.to_ipv6_mapped().octets())
}

pub(crate) fn poll(queue: &CompletionQueue) -> Option<Completion> {
    queue.poll().unwrap()
}

pub(crate) fn done(completion: &Completion) -> CompletionInfo {
    completion.result().unwrap()
}

pub(crate) fn status(completion: &Completion) -> WcStatus {
    completion.result().unwrap_err().status
}
