//! Tests that run in a process of their own.

use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, SFlag, mknod, stat};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, Uid, setuid};
use rdmacm::{Connector, Stage};
use rdmacm_addrinfo::Hints;
use rdmacm_core::{AddressAbi, ChannelOptions, CmAddr, Error, EventChannel, PortSpace};
use rdmacm_tests::{FIRST_PORT, PATIENCE, SECOND, Site, free_ports};
use rdmacm_tests_macros::case;

use crate::c_tools::tool::Tool;
use crate::connector::handshakes;
use crate::listener::closed;
use crate::messages::killed_peer;
use crate::node::fork;
use crate::rdma_core::RdmaCore;
use crate::schedule::watchdog;
use crate::{command, getaddrinfo, messages, scenarios, streams, verbs};

const TASK: &str = "RDMACM_TEST_CHILD";
const ADDRESS: &str = "RDMACM_TEST_ADDRESS";
const DRIVER: &str = "RDMACM_TEST_DRIVER";
/// More ports than a task uses.
const PORTS: u16 = 8;
pub(crate) const NOBODY: Uid = Uid::from_raw(65_534);
const NODE: &str = "/dev/infiniband/rdma_cm";

/// The command that runs a task of [`TASKS`] in a process of its own.
pub(crate) fn task(task: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env(TASK, task);
    command
}

/// Runs a task in a process of its own, and checks that it succeeds.
pub(crate) fn run(name: &str) {
    check(&mut task(name));
}

/// Like [`run`], for this device.
pub(crate) fn run_at(name: &str, site: &Site) {
    check(&mut task_at(name, site));
}

/// A task for one device.
pub(crate) fn task_at(name: &str, site: &Site) -> Command {
    let mut command = task(name);
    command.env(ADDRESS, site.v4.to_string());
    command.env(FIRST_PORT, free_ports(PORTS).to_string());
    command.env(DRIVER, site.driver());
    command
}

/// In a child: the device that its parent named.
pub(crate) fn site() -> Site {
    let asked = std::env::var(DRIVER).unwrap();
    let mut sites = [Site::rxe, Site::siw]
        .map(|site| site(AddressAbi::AnyFamily))
        .into_iter();
    sites.find(|site| site.driver() == asked).unwrap()
}

/// A task may wait several times as long as a test is patient.
fn check(command: &mut Command) {
    let task = Tool::spawn_on(command, Stdio::null(), Stdio::piped());
    task.finish_within(5 * PATIENCE).assert_success();
}

/// Whether a forked process ends and succeeds. One that does not end is killed.
pub(crate) fn ends(child: Pid) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)).unwrap() {
            WaitStatus::StillAlive => thread::sleep(Duration::from_millis(1)),
            status => return status == WaitStatus::Exited(child, 0),
        }
    }
    kill(child, Signal::SIGKILL).unwrap();
    waitpid(child, None).unwrap();
    false
}

/// In a child: runs its task and returns the exit code. A task that does not exist is a failure.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let asked = std::env::var_os(TASK)?;
    let tasks = TASKS
        .iter()
        .chain(fork::TASKS)
        .chain(verbs::child::TASKS)
        .chain(verbs::processes::TASKS)
        .chain(closed::TASKS)
        .chain(killed_peer::TASKS)
        .chain(handshakes::TASKS)
        .chain(watchdog::TASKS)
        .chain(streams::killed_peer::TASKS)
        .chain(streams::threads::TASKS);
    let Some((_, task)) = tasks.into_iter().find(|(name, _)| asked == *name) else {
        eprintln!("no task {asked:?}");
        return Some(ExitCode::FAILURE);
    };
    task();
    Some(ExitCode::SUCCESS)
}

#[case]
fn a_task_that_does_not_exist_fails() {
    let output = task("nothing").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(output.stderr, b"no task \"nothing\"\n");
}

const TASKS: &[(&str, fn())] = &[
    ("changed_credentials", changed_credentials),
    ("privileged_port", privileged_port),
    ("missing_node", missing_node),
    ("missing_module", missing_module),
    ("late_node", late_node),
    ("missing_permission", missing_permission),
    ("messages_beyond_the_limit", messages::beyond_the_limit),
    ("actor", scenarios::process::run),
    ("getaddrinfo", || getaddrinfo::ask(RdmaCore::System)),
    ("newest_getaddrinfo", || getaddrinfo::ask(RdmaCore::Newest)),
    (
        "command_without_verbs_nodes",
        command::ping::without_verbs_nodes,
    ),
    ("dead_name_server", getaddrinfo::wait_out_a_dead_server),
];

fn changed_credentials() {
    let channel = EventChannel::open().unwrap();
    let before = channel.create_id(PortSpace::TCP).unwrap();
    setuid(NOBODY).unwrap();
    let after = channel.create_id(PortSpace::TCP).unwrap_err();
    assert_eq!(after.raw_os_error(), Some(libc::EACCES));
    let words = after.to_string();
    assert!(words.contains("credentials have changed"), "{words}");
    let refused = before.listen(1).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EACCES));
    // The kernel refuses to destroy it too, and dropping it reports nothing.
    drop(before);
    let channel = EventChannel::open().unwrap();
    drop(channel.create_id(PortSpace::TCP).unwrap());
}

fn privileged_port() {
    let address: IpAddr = std::env::var(ADDRESS).unwrap().parse().unwrap();
    setuid(NOBODY).unwrap();
    let channel = EventChannel::open().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let error = id.bind((address, 1023)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EACCES));
    let words = error.to_string();
    assert!(words.contains("CAP_NET_BIND_SERVICE"), "{words}");
    let other = channel.create_id(PortSpace::TCP).unwrap();
    let source = CmAddr::from((address, 1022));
    let refused = other.resolve_addr(Some(source), (address, 7471), SECOND);
    let words = refused.unwrap_err().to_string();
    assert!(words.contains("CAP_NET_BIND_SERVICE"), "{words}");
    id.bind((address, 0)).unwrap();
}

/// Mounts an empty file system over `directory`, visible to this thread, its threads
/// and its child processes.
pub(crate) fn hide(directory: &str) {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(none, "/", none, private, none).unwrap();
    mount(
        Some("tmpfs"),
        directory,
        Some("tmpfs"),
        MsFlags::empty(),
        none,
    )
    .unwrap();
}

fn refused_to_open() -> (i32, String) {
    match EventChannel::open() {
        Err(error @ Error::Open { .. }) => (error.raw_os_error().unwrap(), error.to_string()),
        other => panic!("{other:?}"),
    }
}

fn missing_node() {
    hide("/dev/infiniband");
    let (errno, words) = refused_to_open();
    assert_eq!(errno, libc::ENOENT);
    assert!(words.contains(NODE), "{words}");
    assert!(words.contains("the module is loaded"), "{words}");
    // A deadline ends the wait for the node.
    let begun = Instant::now();
    let impatient = EventChannel::options().device_node_timeout(Duration::ZERO);
    assert!(matches!(impatient.open(), Err(Error::Open { .. })));
    let hints = Hints::rc().deadline(Duration::from_millis(100));
    let refused = rdmacm_addrinfo::resolve("192.0.2.1", "7471", &hints).unwrap_err();
    let is_open = matches!(refused, rdmacm_addrinfo::Error::Rdma(Error::Open { .. }));
    assert!(is_open, "{refused:?}");
    let connector = Connector::new("192.0.2.1:7471").deadline(Duration::from_millis(100));
    assert_eq!(connector.resolve().unwrap_err().stage(), Stage::Open);
    assert!(begun.elapsed() < ChannelOptions::DEFAULT_DEVICE_NODE_TIMEOUT);
    let begun = Instant::now();
    let arguments = ["resolve", "192.0.2.1", "--async", "--timeout", "100"];
    Tool::rdmacm(&arguments).finish().assert_contains(NODE);
    assert!(begun.elapsed() < ChannelOptions::DEFAULT_DEVICE_NODE_TIMEOUT);
}

/// Like udev, after the kernel has created the device.
fn late_node() {
    let device = stat(Path::new(NODE)).unwrap().st_rdev;
    let verbs = stat(Path::new("/dev/infiniband/uverbs0")).unwrap().st_rdev;
    hide("/dev/infiniband");
    let open = thread::spawn(EventChannel::open);
    let make = |name: &str, device| {
        let (kind, mode) = (SFlag::S_IFCHR, Mode::from_bits_retain(0o666));
        mknod(&Path::new("/dev/infiniband").join(name), kind, mode, device).unwrap();
    };
    make("uverbs0", verbs);
    make("rdma_cm", device);
    let channel = open.join().unwrap().unwrap();
    drop(channel.create_id(PortSpace::TCP).unwrap());
}

fn missing_module() {
    hide("/dev/infiniband");
    hide("/sys/class/misc");
    let (errno, words) = refused_to_open();
    assert_eq!(errno, libc::ENOENT);
    assert!(words.contains("modprobe rdma_ucm"), "{words}");
}

/// Leaves only the connection manager's node in `/dev/infiniband`.
pub(crate) fn hide_verbs_nodes() {
    let device = stat(Path::new(NODE)).unwrap().st_rdev;
    hide("/dev/infiniband");
    mknod(
        Path::new(NODE),
        SFlag::S_IFCHR,
        Mode::from_bits_retain(0o600),
        device,
    )
    .unwrap();
}

fn missing_permission() {
    hide_verbs_nodes();
    setuid(NOBODY).unwrap();
    let (errno, words) = refused_to_open();
    assert_eq!(errno, libc::EACCES);
    assert!(words.contains("no permission"), "{words}");
}
