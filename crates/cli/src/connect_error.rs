//! Errors of connecting.

use rdmacm::Error;

use crate::until_closed::WorkError;

/// The error of connecting, with the server's reason if it sent one.
pub(crate) fn connect_error(error: &Error) -> WorkError {
    let reason = String::from_utf8_lossy(error.private_data());
    WorkError::Unconnected(match reason.trim_end_matches('\0') {
        reason if error.is_rejected() && !reason.is_empty() => {
            format!("{error}: {}", reason.escape_debug())
        }
        _ => error.to_string(),
    })
}
