//! A private `/etc` for a test.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// An `/etc` that is visible only to one thread and its children.
#[derive(Debug)]
pub(crate) struct PrivateEtc(Vec<(String, String)>);

impl PrivateEtc {
    /// An `/etc` in which names come from files and may stand in several lines. The C
    /// library reads the latter setting once in a process, so every such `/etc` must
    /// contain it.
    pub(crate) fn new() -> Self {
        Self(Vec::new())
            .file("nsswitch.conf", "hosts: files\nservices: files\n")
            .file("host.conf", "multi on\n")
    }

    pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
        self.0.push((format!("/etc/{name}"), text.to_owned()));
        self
    }

    /// A copy of a directory's files.
    pub(crate) fn keeping(mut self, directory: &str) -> Self {
        for entry in fs::read_dir(format!("/etc/{directory}")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{directory}/{name}");
            let text = fs::read_to_string(format!("/etc/{path}")).unwrap();
            self = self.file(&path, &text);
        }
        self
    }

    /// Runs a test on a thread that sees only these files.
    pub(crate) fn run<T: Send>(self, test: impl FnOnce() -> T + Send) -> T {
        let body = move || {
            self.cover_the_old();
            test()
        };
        let done = thread::scope(|scope| scope.spawn(body).join());
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn cover_the_old(&self) {
        let none: Option<&str> = None;
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(none, "/", none, private, none).unwrap();
        let tmpfs = Some("tmpfs");
        mount(tmpfs, "/etc", tmpfs, MsFlags::empty(), none).unwrap();
        let time = a_time_of_its_own();
        for (path, text) in &self.0 {
            fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
            let mut file = File::create(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.set_modified(time).unwrap();
        }
    }
}

/// The C library recognises files that it has read by size, time and inode number,
/// which may all be equal in two file systems created at the same moment.
fn a_time_of_its_own() -> SystemTime {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    SystemTime::UNIX_EPOCH + Duration::from_secs(made)
}
