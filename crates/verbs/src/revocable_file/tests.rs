//! Files that are closed while threads use them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::RevocableFile;

/// A file that knows whether it is open.
struct Probe {
    is_open: Arc<AtomicBool>,
}

impl Probe {
    fn new() -> (Self, Arc<AtomicBool>) {
        let is_open = Arc::new(AtomicBool::new(true));
        let file = Self {
            is_open: Arc::clone(&is_open),
        };
        (file, is_open)
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        assert!(self.is_open.swap(false, Ordering::Relaxed), "dropped twice");
    }
}

#[test]
fn it_is_closed_once_after_a_last_use() {
    let (file, is_open) = Probe::new();
    let file = RevocableFile::new(file);
    assert_eq!(file.with(Probe::is_open), Some(true));
    assert_eq!(file.close(Probe::is_open), Some(true));
    assert!(!is_open.load(Ordering::Relaxed));
    assert_eq!(file.with(Probe::is_open), None);
    assert_eq!(file.close(Probe::is_open), None);
    assert_eq!(
        format!("{file:?}"),
        "RevocableFile { is_closed: true, users: 0, .. }"
    );
}

/// Uses the file on another thread until it may leave. Whether it is open then.
fn spawn_user<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    file: &'scope RevocableFile<Probe>,
    enter: mpsc::Sender<()>,
    left: mpsc::Receiver<()>,
) -> thread::ScopedJoinHandle<'scope, Option<bool>> {
    let using = move |file: &Probe| {
        enter.send(()).unwrap();
        left.recv().unwrap();
        file.is_open()
    };
    scope.spawn(move || file.with(using))
}

#[test]
fn closing_waits_for_its_users_and_lets_no_more_in() {
    let (file, is_open) = Probe::new();
    let file = RevocableFile::new(file);
    let (leave, left) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel();
    thread::scope(|scope| {
        let user = spawn_user(scope, &file, enter, left);
        entered.recv().unwrap();
        let closing = scope.spawn(|| file.close(|_| ()));
        // Until the closing thread has closed it, users are let in.
        let late = scope.spawn(|| while file.with(|_| ()).is_some() {});
        while !format!("{file:?}").contains("is_closed: true") {
            thread::yield_now();
        }
        assert!(is_open.load(Ordering::Relaxed));
        assert!(!closing.is_finished() && !late.is_finished());
        leave.send(()).unwrap();
        assert_eq!(user.join().unwrap(), Some(true));
        assert_eq!(closing.join().unwrap(), Some(()));
        late.join().unwrap();
    });
    assert!(!is_open.load(Ordering::Relaxed));
}

/// A thread that was using it at a fork is not in the child, but is counted there.
#[test]
fn an_abandoned_file_waits_for_no_user_and_is_dropped_once() {
    let (file, is_open) = Probe::new();
    let file = RevocableFile::new(file);
    let (leave, left) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel();
    thread::scope(|scope| {
        let user = spawn_user(scope, &file, enter, left);
        entered.recv().unwrap();
        file.abandon();
        assert_eq!(file.with(Probe::is_open), None);
        assert_eq!(file.close(Probe::is_open), None);
        file.abandon();
        assert!(is_open.load(Ordering::Relaxed), "others may use it");
        leave.send(()).unwrap();
        assert_eq!(user.join().unwrap(), Some(true));
    });
    assert!(is_open.load(Ordering::Relaxed));
    drop(file);
    assert!(!is_open.load(Ordering::Relaxed));
}

/// Another thread was closing it at the fork.
#[test]
fn a_file_that_is_being_closed_can_be_abandoned() {
    let (file, is_open) = Probe::new();
    let file = RevocableFile::new(file);
    thread::scope(|scope| {
        let (leave, left) = mpsc::channel::<()>();
        let (enter, entered) = mpsc::channel();
        let shared = &file;
        let closing = scope.spawn(move || {
            shared.close(|_| {
                enter.send(()).unwrap();
                left.recv().unwrap();
            })
        });
        entered.recv().unwrap();
        file.abandon();
        assert_eq!(file.with(Probe::is_open), None);
        leave.send(()).unwrap();
        assert_eq!(closing.join().unwrap(), Some(()));
    });
    assert!(!is_open.load(Ordering::Relaxed));
    drop(file);
}

#[test]
fn a_user_that_panics_leaves() {
    let (file, _is_open) = Probe::new();
    let file = RevocableFile::new(file);
    let panicking = || file.with(|_| panic!("expected"));
    catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
    let closing = || file.close(|_| panic!("expected"));
    catch_unwind(AssertUnwindSafe(closing)).unwrap_err();
    assert_eq!(file.close(|_| ()), None);
    assert!(file.with(|_| ()).is_none());
}

#[test]
fn no_user_sees_a_closed_file() {
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 2_000 };
    for _ in 0..ROUNDS {
        let (file, is_open) = Probe::new();
        let file = RevocableFile::new(file);
        let closed = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| while file.with(|file| assert!(file.is_open())).is_some() {});
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    let last = file.close(|file| assert!(file.is_open()));
                    closed.fetch_add(last.iter().count(), Ordering::Relaxed);
                    // Also the one that has not closed it returns only then.
                    assert!(!is_open.load(Ordering::Relaxed));
                });
            }
        });
        assert_eq!(closed.load(Ordering::Relaxed), 1);
    }
}
