//! Running what blocks in the kernel on other threads.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// The default of [`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes).
pub const DEFAULT_MAX_HANDSHAKES: usize = 64;

/// Signals that a thread's own faults raise. While one of them is blocked, its fault kills
/// the process without running a handler.
const FAULTS: [Signal; 5] = [
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGSEGV,
    Signal::SIGTRAP,
];

/// A task that may block.
pub type BlockingTask = Box<dyn FnOnce() + Send>;

/// Runs tasks that block in the kernel.
///
/// On iWARP, the kernel's CONNECT performs the TCP handshake before it returns, and
/// DISCONNECT, destroying an id and destroying a queue pair wait up to 10 s while an MPA
/// handshake is under way. Name lookups block as well. A call that waits for such a task
/// returns at its deadline all the same. The task goes on until the kernel returns, which
/// is after about 127 s for a TCP handshake that nobody answers, with Linux's defaults
/// (`net.ipv4.tcp_syn_retries`), and its resources are released then.
/// [`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes) limits the handshakes
/// of a node, abandoned ones included.
///
/// In siw, a signal with a handler interrupts CONNECT, which is repeated then; and while a
/// command waits for another one of the same connection, siw discards pending signals
/// (`siw_cep_set_inuse`). Threads that run tasks should block signals.
pub trait BlockingExecutor: fmt::Debug + Send + Sync {
    /// Runs the task soon, and not on the calling thread. If the executor cannot take it,
    /// it runs the task on the calling thread before it returns.
    fn spawn(&self, task: BlockingTask);
}

/// A short-lived thread for each task, named `rdmacm`, with signals blocked.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadExecutor;

impl BlockingExecutor for ThreadExecutor {
    fn spawn(&self, task: BlockingTask) {
        // The task is needed again if no thread can be created.
        let task = Arc::new(Mutex::new(Some(task)));
        let on_thread = Arc::clone(&task);
        let spawned = thread::Builder::new()
            .name("rdmacm".to_owned())
            .spawn(move || {
                block_signals();
                run(&on_thread);
            });
        if spawned.is_err() {
            run(&task);
        }
    }
}

fn block_signals() {
    let mut signals = SigSet::all();
    for fault in FAULTS {
        signals.remove(fault);
    }
    // Fails only for invalid arguments.
    let _ = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK);
}

fn run(task: &Mutex<Option<BlockingTask>>) {
    let taken = task.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(task) = taken {
        task();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_task_runs_on_a_named_thread() {
        let (sender, receiver) = mpsc::channel();
        ThreadExecutor.spawn(Box::new(move || {
            let name = thread::current().name().map(str::to_owned);
            sender.send(name).unwrap();
        }));
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("rdmacm"));
    }

    #[test]
    fn signals_do_not_interrupt_a_task() {
        let (sender, receiver) = mpsc::channel();
        ThreadExecutor.spawn(Box::new(move || {
            sender.send(SigSet::thread_get_mask().unwrap()).unwrap();
        }));
        let blocked = receiver.recv().unwrap();
        assert!(blocked.contains(Signal::SIGUSR1) && blocked.contains(Signal::SIGPROF));
        assert!(!FAULTS.iter().any(|fault| blocked.contains(*fault)));
    }
}
