//! Running elsewhere what blocks inside the kernel.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// How many of TCP's handshakes a node lets be under way at a time where the caller does
/// not say, see [`NodeOptions::handshakes`](crate::NodeOptions::handshakes).
pub const MAX_HANDSHAKES: usize = 64;

/// Those of the thread's own doing; blocked, they would end the process unheard.
const FAULTS: [Signal; 5] = [
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGSEGV,
    Signal::SIGTRAP,
];

/// A piece of work that may block.
pub type Job = Box<dyn FnOnce() + Send>;

/// Runs elsewhere what blocks inside the kernel.
///
/// On iWARP the kernel's CONNECT performs the TCP handshake before it returns,
/// and DISCONNECT, destroying an id and destroying a queue pair wait up to 10 s
/// while an MPA handshake is under way. Names are looked up the same way. What
/// waits for such a job returns at its deadline all the same; the job is left
/// behind, and what it was about ends when it returns: for a TCP handshake that
/// nobody answers after about 127 s with Linux's defaults
/// (`net.ipv4.tcp_syn_retries`). How many of a node's handshakes may be under way,
/// left behind or not, [`NodeOptions::handshakes`](crate::NodeOptions::handshakes) says.
///
/// siw lets a signal that has a handler interrupt CONNECT, which then begins anew, and
/// throws away what signals are pending where a command waits for another of the same
/// connection (`siw_cep_set_inuse`). Threads that take jobs do well to block signals.
pub trait Offload: fmt::Debug + Send + Sync {
    /// Runs the job, soon and not on the calling thread. One that cannot be
    /// taken is run in place before this returns.
    fn run(&self, job: Job);
}

/// A short-lived thread for each job, named `rdmacm`, which leaves signals to others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

impl Offload for Threads {
    fn run(&self, job: Job) {
        // The job comes back where no thread is to be had.
        let job = Arc::new(Mutex::new(Some(job)));
        let theirs = Arc::clone(&job);
        let spawned = thread::Builder::new()
            .name("rdmacm".to_owned())
            .spawn(move || {
                block_signals();
                run(&theirs);
            });
        if spawned.is_err() {
            run(&job);
        }
    }
}

fn block_signals() {
    let mut signals = SigSet::all();
    for fault in FAULTS {
        signals.remove(fault);
    }
    // Fails for wrong arguments alone.
    let _ = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK);
}

fn run(job: &Mutex<Option<Job>>) {
    let taken = job.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(job) = taken {
        job();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_job_runs_on_a_thread_with_a_name() {
        let (sender, receiver) = mpsc::channel();
        Threads.run(Box::new(move || {
            let name = thread::current().name().map(str::to_owned);
            sender.send(name).unwrap();
        }));
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("rdmacm"));
    }

    #[test]
    fn a_job_is_not_interrupted() {
        let (sender, receiver) = mpsc::channel();
        Threads.run(Box::new(move || {
            sender.send(SigSet::thread_get_mask().unwrap()).unwrap();
        }));
        let blocked = receiver.recv().unwrap();
        assert!(blocked.contains(Signal::SIGUSR1) && blocked.contains(Signal::SIGPROF));
        assert!(!FAULTS.iter().any(|fault| blocked.contains(*fault)));
    }
}
