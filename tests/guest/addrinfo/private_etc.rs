//! A test's own `/etc`.

use std::fs;
use std::path::Path;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// The files of an `/etc` that only one thread sees, and those it starts.
#[derive(Debug)]
pub(crate) struct PrivateEtc(Vec<(String, String)>);

impl PrivateEtc {
    /// One in which names come from files and may stand in several lines. The C
    /// library reads the latter once in a process: all of them must say so.
    pub(crate) fn new() -> Self {
        Self(Vec::new())
            .file("nsswitch.conf", "hosts: files\nservices: files\n")
            .file("host.conf", "multi on\n")
    }

    pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
        self.0.push((format!("/etc/{name}"), text.to_owned()));
        self
    }

    /// With the files of a directory as they are outside.
    pub(crate) fn keeping(mut self, directory: &str) -> Self {
        for entry in fs::read_dir(format!("/etc/{directory}")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{directory}/{name}");
            let text = fs::read_to_string(format!("/etc/{path}")).unwrap();
            self = self.file(&path, &text);
        }
        self
    }

    /// Runs a test on a thread that sees these files and no others.
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
        for (path, text) in &self.0 {
            fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
}
