//! What the threads of the process are doing.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use nix::unistd::{Pid, gettid};

/// Threads that have used a fabric.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users(BTreeSet<Pid>);

/// What threads other than the calling one are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// A thread runs, or is about to.
    pub(crate) is_any_active: bool,
    /// One of those that have used the fabric does.
    pub(crate) is_user_active: bool,
}

impl Users {
    /// Records the calling thread.
    pub(crate) fn add_this(&mut self) {
        self.0.insert(gettid());
    }

    /// Looks at all threads of the process but the calling one. Twice, because a thread
    /// may wake another one that was looked at before, and sleep when it is looked at itself.
    ///
    /// Without `/proc`, other threads that have not used the fabric count as active.
    pub(crate) fn activity(&self) -> Activity {
        let unknown = Activity {
            is_any_active: true,
            is_user_active: false,
        };
        (0..2)
            .map(|_| self.look().unwrap_or(unknown))
            .find(|activity| activity.is_any_active)
            .unwrap_or_default()
    }

    fn look(&self) -> io::Result<Activity> {
        let mut activity = Activity::default();
        let this = gettid();
        for entry in fs::read_dir("/proc/self/task")? {
            let entry = entry?;
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let Some(thread) = number.map(Pid::from_raw).filter(|thread| *thread != this) else {
                continue;
            };
            // A thread that has ended meanwhile has no file any more.
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            if is_active(&stat) {
                activity.is_any_active = true;
                activity.is_user_active |= self.0.contains(&thread);
            }
        }
        Ok(activity)
    }
}

/// Whether a thread runs, is runnable, or waits for a page or another uninterruptible
/// operation. Its state follows its name, which is in parentheses and may contain anything.
/// Source: `proc_pid_stat(5)`.
fn is_active(stat: &str) -> bool {
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| state.starts_with(['R', 'D']))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn states_are_read() {
        assert!(is_active("12 (a thread) R 1 12 12 0"));
        assert!(is_active("12 () S (x)) D 1 12 12 0"));
        assert!(!is_active("12 (R) S 1 12 12 0"));
        assert!(!is_active(""));
    }

    #[test]
    fn a_thread_that_works_is_active() {
        let (sender, receiver) = channel();
        let is_done = AtomicBool::new(false);
        let mut users = Users::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                sender.send(gettid()).unwrap();
                while !is_done.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            });
            let thread = receiver.recv().unwrap();
            let without = users.look().unwrap();
            users.0.insert(thread);
            let with = users.look().unwrap();
            is_done.store(true, Ordering::Relaxed);
            assert!(without.is_any_active && !without.is_user_active);
            assert!(with.is_any_active && with.is_user_active);
        });
    }

    #[test]
    fn a_thread_that_sleeps_is_not_active() {
        let (sender, receiver) = channel::<()>();
        let (names, name) = channel();
        let mut users = Users::default();
        thread::scope(|scope| {
            scope.spawn(move || {
                names.send(gettid()).unwrap();
                let _ = receiver.recv();
            });
            users.0.insert(name.recv().unwrap());
            while users.look().unwrap().is_user_active {
                thread::yield_now();
            }
            drop(sender);
        });
    }
}
