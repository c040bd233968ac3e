//! The program's entry, which the C library calls.
//!
//! The runtime that calls an ordinary Rust `main` prepares a message for stack overflows.
//! For that the GNU C library reads and parses `/proc/self/maps`, a third of all
//! instructions from the start of a program to its first address. This entry prepares all
//! else that the runtime does: a write to a closed pipe is an error, the three standard
//! streams are open, and a panic ends the process with 101. A stack overflow ends it with
//! `SIGSEGV`, as ever, without a message.
//!
//! With another C library the program has an ordinary `main`: some of them pass the
//! arguments to nothing else.
#![expect(unsafe_code, reason = "the C library calls a function by its name")]

use std::ffi::{c_char, c_int};
use std::fs::File;
use std::os::fd::IntoRawFd as _;

use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};

/// The exit code after a panic.
const PANICKED: u8 = 101;

/// Runs the program.
// SAFETY: no other function of the program has this name, and it is what the C library
// declares.
#[unsafe(no_mangle)]
extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
    open_standard_streams();
    ignore_closed_pipes();
    let code = std::panic::catch_unwind(crate::run).unwrap_or(PANICKED);
    code.into()
}

/// Opens `/dev/null` for each standard stream that is closed: the next file that is opened
/// would take its place. In place of standard output it is only open for reading, so that nobody
/// takes what is lost for written.
fn open_standard_streams() {
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: the command takes no pointer and changes nothing.
        let flags = unsafe { libc::fcntl(stream, libc::F_GETFD) };
        if flags == -1 {
            // Takes the lowest number that is free, which is this one.
            let is_written = stream != libc::STDOUT_FILENO;
            let null = File::options()
                .read(true)
                .write(is_written)
                .open("/dev/null");
            let _ = null.map(File::into_raw_fd);
        }
    }
}

fn ignore_closed_pipes() {
    // SAFETY: no other thread runs yet, and ignoring a signal calls nothing.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigIgn) };
}
