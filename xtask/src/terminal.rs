//! Connects this process's terminal to a guest.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::thread;

use anyhow::{Context as _, ensure};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use rdmacm_init::WindowSize;

/// The terminal in raw mode, restored when dropped.
#[derive(Debug)]
pub(crate) struct RawMode(Termios);

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that was closed needs no restoring.
        let _ = tcsetattr(std::io::stdin().as_fd(), SetArg::TCSADRAIN, &self.0);
    }
}

/// Connects this terminal to a guest's until the guest closes it.
pub(crate) fn connect(stream: UnixStream) -> anyhow::Result<RawMode> {
    let before = tcgetattr(std::io::stdin().as_fd()).context("read the terminal's mode")?;
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    tcsetattr(std::io::stdin().as_fd(), SetArg::TCSADRAIN, &raw).context("make it raw")?;
    let raw = RawMode(before);

    let mut to_guest = stream.try_clone().context("share the guest's terminal")?;
    thread::Builder::new()
        .name("keyboard".to_owned())
        .spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = std::io::stdin().read(&mut buffer) {
                if to_guest.write_all(&buffer[..length]).is_err() {
                    return;
                }
            }
        })?;
    let mut from_guest = stream;
    thread::Builder::new()
        .name("screen".to_owned())
        .spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = from_guest.read(&mut buffer) {
                let mut screen = std::io::stdout().lock();
                if screen
                    .write_all(&buffer[..length])
                    .and_then(|()| screen.flush())
                    .is_err()
                {
                    return;
                }
            }
        })?;
    Ok(raw)
}

/// The size of this process's terminal.
pub(crate) fn size() -> anyhow::Result<WindowSize> {
    let mut stty = std::process::Command::new("stty");
    stty.arg("size").stdin(std::process::Stdio::inherit());
    let output = stty.output().context("start stty")?;
    ensure!(output.status.success(), "`--shell` needs a terminal");
    let text = String::from_utf8_lossy(&output.stdout);
    let (rows, columns) = text
        .trim()
        .split_once(' ')
        .context("the terminal has no size")?;
    Ok(WindowSize {
        rows: rows.parse()?,
        columns: columns.parse()?,
    })
}
