//! Running what blocks in the kernel on other threads.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use parking_lot::Mutex;

mod threads;

use threads::Threads;

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
/// handshake is in flight. Name lookups block as well. A call that waits for such a task
/// returns at its deadline all the same. The task goes on until the kernel returns, which
/// is after about 127 s for a TCP handshake that nobody answers, with Linux's defaults
/// (`net.ipv4.tcp_syn_retries`), and its resources are released then.
/// [`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes) limits the handshakes
/// of a node, abandoned ones included.
///
/// A task may own the last reference to the node, and so drop the executor on one of the executor's
/// own threads: dropping it must not wait for them.
///
/// In siw, a signal with a handler interrupts CONNECT, which is repeated then; and while a
/// command waits for another one of the same connection, siw discards pending signals
/// (`siw_cep_set_inuse`). Threads that run tasks should block signals.
pub trait BlockingExecutor: fmt::Debug + Send + Sync {
    /// Runs the task soon, and not on the calling thread. If the executor cannot take it,
    /// it runs the task on the calling thread before it returns. It must not panic.
    fn spawn(&self, task: BlockingTask);
}

/// Runs tasks on threads of its own, named `rdmacm`, with signals blocked.
///
/// No task waits for another one: a thread is created unless one is idle. A thread that has
/// been idle for [`THREAD_IDLE_TIME`], or whose executor was dropped, ends. Clones share their threads.
#[derive(Clone, Debug, Default)]
pub struct ThreadExecutor(Arc<SharedThreads>);

/// How long a thread of a [`ThreadExecutor`] waits for another task: 1 s.
pub const THREAD_IDLE_TIME: Duration = Duration::from_secs(1);

/// What the clones of an executor own. The threads do not, so that it is dropped with the
/// executor.
#[derive(Debug)]
struct SharedThreads {
    threads: Arc<Threads>,
    /// A forked child has none of the threads.
    process: u32,
}

impl SharedThreads {
    fn new(idle_time: Duration) -> Self {
        Self {
            threads: Arc::new(Threads::new(idle_time)),
            process: std::process::id(),
        }
    }

    fn is_in_child(&self) -> bool {
        std::process::id() != self.process
    }
}

impl Default for SharedThreads {
    fn default() -> Self {
        Self::new(THREAD_IDLE_TIME)
    }
}

impl Drop for SharedThreads {
    fn drop(&mut self) {
        // A thread of the parent may have held the lock at the fork.
        if !self.is_in_child() {
            self.threads.close();
        }
    }
}

impl BlockingExecutor for ThreadExecutor {
    fn spawn(&self, task: BlockingTask) {
        // A forked child has neither the threads nor the tasks that wait for them.
        let threads = (!self.0.is_in_child()).then(|| Arc::clone(&self.0.threads));
        let task = match &threads {
            Some(threads) => threads.give(task),
            None => Some(task),
        };
        let Some(task) = task else {
            return;
        };
        // The task is needed again if no thread can be created.
        let task = Arc::new(Mutex::new(Some(task)));
        let on_thread = Arc::clone(&task);
        let spawned = thread::Builder::new()
            .name("rdmacm".to_owned())
            .spawn(move || {
                block_signals();
                run(&on_thread);
                if let Some(threads) = threads {
                    threads.run_until_idle();
                }
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
    let taken = task.lock().take();
    if let Some(task) = taken {
        task();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    use rdmacm_test_helpers::child_ends;

    /// Whose threads do not end while a test is not scheduled for a moment.
    fn patient() -> ThreadExecutor {
        ThreadExecutor(Arc::new(SharedThreads::new(THREAD_IDLE_TIME * 600)))
    }

    fn wait_until_idle(threads: &Threads, count: usize) {
        while threads.idle() != count {
            thread::yield_now();
        }
    }

    #[test]
    fn a_task_runs_on_a_named_thread() {
        let (sender, receiver) = mpsc::channel();
        ThreadExecutor::default().spawn(Box::new(move || {
            let name = thread::current().name().map(str::to_owned);
            sender.send(name).unwrap();
        }));
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("rdmacm"));
    }

    #[test]
    fn a_thread_that_is_idle_takes_the_next_task() {
        let executor = patient();
        let (sender, receiver) = mpsc::channel();
        let mut threads = Vec::new();
        for _ in 0..3 {
            let sender = sender.clone();
            executor.spawn(Box::new(move || {
                sender.send(thread::current().id()).unwrap();
            }));
            threads.push(receiver.recv().unwrap());
            wait_until_idle(&executor.0.threads, 1);
        }
        assert!(threads.iter().all(|thread| *thread == threads[0]));
    }

    #[test]
    fn no_task_waits_for_another() {
        let executor = ThreadExecutor::default();
        // Each waits for the other one.
        let (first, second) = (mpsc::channel(), mpsc::channel());
        let (done, both) = mpsc::channel();
        for (to, from) in [(first.0, second.1), (second.0, first.1)] {
            let done = done.clone();
            executor.spawn(Box::new(move || {
                to.send(()).unwrap();
                from.recv().unwrap();
                done.send(()).unwrap();
            }));
        }
        both.recv().unwrap();
        both.recv().unwrap();
    }

    /// As a thread of the parent holds it in that moment.
    #[test]
    fn a_forked_child_needs_no_lock_of_its_parent() {
        let executor = ThreadExecutor::default();
        let (locked, is_locked) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let threads = Arc::clone(&executor.0.threads);
        let holder = thread::spawn(move || {
            threads.while_locked(|| {
                locked.send(()).unwrap();
                let _ = ends.recv();
            });
        });
        is_locked.recv().unwrap();
        let mut inherited = Some(executor);
        let has_ended = child_ends(|| {
            let (sender, receiver) = mpsc::channel();
            let executor = inherited.take().unwrap();
            executor.spawn(Box::new(move || sender.send(()).unwrap()));
            receiver.recv().unwrap();
            drop(executor);
        });
        drop(end);
        holder.join().unwrap();
        assert!(has_ended);
    }

    #[test]
    fn threads_end_with_their_executor() {
        let executor = patient();
        executor.spawn(Box::new(|| ()));
        let threads = Arc::clone(&executor.0.threads);
        wait_until_idle(&threads, 1);
        drop(executor);
        wait_until_idle(&threads, 0);
    }

    #[test]
    fn signals_do_not_interrupt_a_task() {
        let (sender, receiver) = mpsc::channel();
        ThreadExecutor::default().spawn(Box::new(move || {
            sender.send(SigSet::thread_get_mask().unwrap()).unwrap();
        }));
        let blocked = receiver.recv().unwrap();
        assert!(blocked.contains(Signal::SIGUSR1) && blocked.contains(Signal::SIGPROF));
        assert!(!FAULTS.iter().any(|fault| blocked.contains(*fault)));
    }
}
