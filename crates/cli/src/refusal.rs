//! Why there is no connection.

use rdmacm::Error;

use crate::attend::Stop;

/// Why there is no connection, in the server's words where it has any.
pub(crate) fn unconnected(error: &Error) -> Stop {
    let words = String::from_utf8_lossy(error.private_data());
    Stop::Unconnected(match words.trim_end_matches('\0') {
        words if error.is_rejected() && !words.is_empty() => {
            format!("{error}: {}", words.escape_debug())
        }
        _ => error.to_string(),
    })
}
