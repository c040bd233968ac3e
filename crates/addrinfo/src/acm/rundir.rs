//! The directory in which ibacm listens.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

/// The paths of ibacm in one directory.
#[derive(Debug)]
pub(super) struct Rundir {
    port_file: Cow<'static, CStr>,
    socket: Cow<'static, CStr>,
}

impl Default for Rundir {
    /// Where ibacm is by default.
    fn default() -> Self {
        Self {
            port_file: Cow::Borrowed(c"/run/ibacm.port"),
            socket: Cow::Borrowed(c"/run/ibacm.sock"),
        }
    }
}

impl Rundir {
    pub(super) fn at(directory: &Path) -> Self {
        let path = |name| {
            let path = directory.join(name).into_os_string().into_vec();
            // No file has a name with a NUL, and none an empty one.
            CString::new(path).map_or(Cow::Borrowed(c""), Cow::Owned)
        };
        Self {
            port_file: path("ibacm.port"),
            socket: path("ibacm.sock"),
        }
    }

    /// The file that holds its TCP port as text.
    pub(super) fn port_file(&self) -> &CStr {
        &self.port_file
    }

    /// Its socket, if there is no port file.
    pub(super) fn socket(&self) -> &CStr {
        &self.socket
    }
}
