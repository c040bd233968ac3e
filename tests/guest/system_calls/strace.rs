//! Parses the output of `strace -f -y -x -o`.

use std::fmt;

use rdmacm_core::CommandNumber;

/// A system call, in the order of beginning.
#[derive(Debug)]
pub(super) struct Call {
    thread: String,
    pub(super) name: String,
    /// Arguments and result in strace's format.
    rest: String,
    finished: bool,
}

/// All calls of all threads. A call that is interrupted by another thread's has two
/// lines, `<unfinished ...>` and `<... resumed>`.
pub(super) fn read(trace: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in trace.lines() {
        let (thread, event) = line.split_once(' ').unwrap();
        let event = event.trim_start();
        if let Some(resumed) = event.strip_prefix("<... ") {
            let (_, rest) = resumed.split_once(" resumed>").unwrap();
            let mut begun = calls.iter_mut().rev();
            let begun = begun.find(|call| call.thread == thread).unwrap();
            assert!(!begun.finished, "{line}");
            begun.rest.push_str(rest);
            begun.finished = true;
        } else if !event.starts_with("+++") && !event.starts_with("---") {
            let (name, rest) = event.split_once('(').unwrap();
            let unfinished = rest.strip_suffix("<unfinished ...>");
            calls.push(Call {
                thread: thread.to_owned(),
                name: name.to_owned(),
                rest: unfinished.unwrap_or(rest).to_owned(),
                finished: unfinished.is_none(),
            });
        }
    }
    calls
}

impl Call {
    pub(super) fn mentions(&self, text: &str) -> bool {
        self.rest.contains(text)
    }

    pub(super) fn touches_rdma(&self) -> bool {
        self.mentions("/dev/infiniband/") || self.mentions("NETLINK_RDMA")
    }

    /// A write to the connection manager's device.
    pub(super) fn is_command(&self) -> bool {
        self.name == "write" && self.first_argument().contains("/dev/infiniband/rdma_cm")
    }

    /// A write to the standard output.
    pub(super) fn is_answer(&self) -> bool {
        self.name == "write" && self.first_argument().starts_with("1<")
    }

    /// The first byte that is written: `"\x13\x00…`.
    pub(super) fn command_number(&self) -> CommandNumber {
        let (_, bytes) = self.rest.split_once("\"\\x").unwrap();
        CommandNumber::new(u32::from_str_radix(&bytes[..2], 16).unwrap())
    }

    fn first_argument(&self) -> &str {
        self.rest.split(',').next().unwrap_or_default()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}", self.name, self.rest)
    }
}
