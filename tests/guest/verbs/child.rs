//! Tests that run in a process of their own.

use std::fs;
use std::process::{Command, id};

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::setuid;
use rdmacm_core::{AccessFlags, QpAttr, QpAttrMask, QpType, RdmaDevice};
use rdmacm_tests::Site;
use rdmacm_verbs::{Context, Error, QpCaps, QueuePair};
use zerocopy::FromZeros;

use crate::child::{NOBODY, hide, site};

pub(crate) const TASKS: &[(&str, fn())] = &[
    ("verbs_changed_credentials", changed_credentials),
    ("verbs_missing_node", missing_node),
    ("verbs_missing_permission", missing_permission),
    ("verbs_other_node", other_node),
    ("verbs_any_order", any_order),
    ("verbs_nothing_is_left", nothing_is_left),
    ("verbs_failures_leave_nothing", failures_leave_nothing),
    ("verbs_locked_memory", locked_memory),
];

fn changed_credentials() {
    let site = site();
    let queue_pair = site.queue_pair();
    setuid(NOBODY).unwrap();
    let error = queue_pair.query().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EACCES));
    let words = error.to_string();
    assert!(words.contains("credentials have changed"), "{words}");
    let attr = QpAttr::new_zeroed();
    let connector: &dyn rdmacm_core::QueuePair = &queue_pair;
    let error = connector.modify(&attr, QpAttrMask::STATE).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EACCES));
    let refused = queue_pair.context().create_protection_domain();
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EACCES));
    // The kernel refuses to destroy them too; they are destroyed with the descriptor,
    // and dropping them reports nothing.
    drop(queue_pair);
    assert_eq!(objects(&site), 0);
    site.queue_pair().state().unwrap();
}

fn refused(device: &RdmaDevice) -> (i32, String) {
    match Context::open(device) {
        Err(error @ Error::Open { .. }) => (error.raw_os_error().unwrap(), error.to_string()),
        other => panic!("{other:?}"),
    }
}

fn missing_node() {
    let device = site().rdma_device();
    let node = device.uverbs_node().unwrap().unwrap();
    hide("/dev/infiniband");
    let (errno, words) = refused(&device);
    assert_eq!(errno, libc::ENOENT);
    assert!(words.contains(&node.name), "{words}");
    assert!(words.contains("missing here"), "{words}");
}

fn node(device: &RdmaDevice, mode: u32, number: u64) {
    let node = device.uverbs_node().unwrap().unwrap();
    let mode = Mode::from_bits_retain(mode);
    mknod(&node.path(), SFlag::S_IFCHR, mode, number).unwrap();
}

fn missing_permission() {
    let device = site().rdma_device();
    let number = device.uverbs_node().unwrap().unwrap().number;
    hide("/dev/infiniband");
    node(&device, 0o600, number);
    setuid(NOBODY).unwrap();
    let (errno, words) = refused(&device);
    assert_eq!(errno, libc::EACCES);
    assert!(words.contains("no permission"), "{words}");
}

fn other_node() {
    let device = site().rdma_device();
    hide("/dev/infiniband");
    // /dev/zero accepts every write.
    node(&device, 0o666, makedev(1, 5));
    let error = Context::open(&device).unwrap_err();
    assert!(matches!(error, Error::OtherNode { .. }), "{error}");
    assert!(error.to_string().contains(&device.name), "{error}");
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The number of this process's objects on the device, for tests that run alone: while
/// others create and destroy objects, the kernel's list may omit some, since it comes in
/// several replies by index.
fn objects(site: &Site) -> usize {
    let ours = format!(" pid {} ", id());
    // The line of a queue pair begins with a link, others with a device.
    let places = [
        format!("link {}/", site.device),
        format!("dev {} ", site.device),
    ];
    let count = |kind| {
        let arguments = ["resource", "show", kind];
        let output = Command::new("rdma").args(arguments).output().unwrap();
        assert!(output.status.success(), "rdma {arguments:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let is_there = |line: &&str| places.iter().any(|place| line.starts_with(place));
        let lines = text.lines().filter(is_there);
        lines.filter(|line| line.contains(&ours)).count()
    };
    ["qp", "cq", "pd", "mr", "ctx"].into_iter().map(count).sum()
}

/// Each object is destroyed before the context is closed, which would destroy what is left.
fn any_order() {
    let site = site();
    for order in 0..24 {
        let context = site.verbs();
        let domain = context.create_protection_domain().unwrap();
        let queue = context.create_completion_queue(8).unwrap();
        let options = QueuePair::options(QpType::RC)
            .protection_domain(&domain)
            .send_cq(&queue)
            .recv_cq(&queue);
        let queue_pair = options.create(&context).unwrap();
        drop(options);
        let open = context.clone();
        let mut handles: Vec<Box<dyn Send>> = vec![
            Box::new(context),
            Box::new(domain),
            Box::new(queue),
            Box::new(queue_pair),
        ];
        let mut rest = order;
        while !handles.is_empty() {
            let next = rest % handles.len();
            rest /= handles.len();
            drop(handles.swap_remove(next));
        }
        // The context itself.
        assert_eq!(objects(&site), 1, "{order}");
        drop(open);
    }
}

fn nothing_is_left() {
    let site = site();
    let before = descriptors();
    assert_eq!(objects(&site), 0);
    let queue_pair = site.queue_pair();
    // Queue pair, two completion queues, protection domain, context.
    assert_eq!(objects(&site), 5);
    // The device and its event descriptor; for each completion queue a channel.
    assert_eq!(descriptors(), before + 2 + 2);
    queue_pair.send_cq().channel().unwrap().readiness().unwrap();
    // What waits for the channel; the close signal and the removal socket.
    assert_eq!(descriptors(), before + 2 + 2 + 3);
    let context = queue_pair.context().clone();
    drop(queue_pair);
    assert_eq!(objects(&site), 1);
    drop(context);
    assert_eq!(objects(&site), 0);
    assert_eq!(descriptors(), before);
}

fn failures_leave_nothing() {
    let site = site();
    let before = descriptors();
    let context = site.verbs();
    let caps = QpCaps {
        max_recv_sge: u32::MAX,
        ..QpCaps::default()
    };
    let options = QueuePair::options(QpType::RC).caps(caps);
    options.create(&context).unwrap_err();
    context.create_completion_queue(0).unwrap_err();
    assert_eq!(objects(&site), 1);
    drop(context);
    let mut wrong = site.rdma_device();
    wrong.index = None;
    wrong.guid.0 ^= 1;
    Context::open(&wrong).unwrap_err();
    assert_eq!(descriptors(), before);
}

/// More than the limit, in pieces that fit into it many times.
const LIMIT: u64 = 1 << 20;
const PIECE: usize = 1 << 18;

fn assert_locked(error: &Error) {
    assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
    let words = error.to_string();
    assert!(words.contains("the limit of locked memory"), "{words}");
    assert!(words.contains("ulimit -l"), "{words}");
}

fn locked_memory() {
    let site = site();
    setrlimit(Resource::RLIMIT_MEMLOCK, LIMIT, LIMIT).unwrap();
    // The limit does not apply to privileged processes.
    setuid(NOBODY).unwrap();
    let queue_pair = site.queue_pair();
    let domain = queue_pair.protection_domain();
    let (before, descriptors_before) = (objects(&site), descriptors());
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ;
    let beyond = 8 * PIECE;
    assert_locked(&domain.allocate(beyond).unwrap_err());
    assert_locked(&domain.expose(beyond, access).unwrap_err());
    let refused = domain.register(vec![7; beyond]).unwrap_err();
    assert_locked(&refused.error);
    assert_eq!(*refused.returned, *vec![7; beyond]);
    assert_eq!(
        (objects(&site), descriptors()),
        (before, descriptors_before)
    );
    for _ in 0..3 {
        let mut held = Vec::new();
        let error = loop {
            match domain.expose(PIECE, access) {
                Ok(memory) => held.push(memory),
                Err(error) => break error,
            }
        };
        assert_locked(&error);
        // As much memory as the limit allows, except for partial pages.
        assert!((3..=4).contains(&held.len()), "{}", held.len());
        assert_eq!(objects(&site), before + held.len());
        // Freeing one piece makes space for another.
        held.pop();
        held.push(domain.expose(PIECE, access).unwrap());
        assert_locked(&domain.allocate(PIECE).unwrap_err());
    }
    assert_eq!(
        (objects(&site), descriptors()),
        (before, descriptors_before)
    );
}
