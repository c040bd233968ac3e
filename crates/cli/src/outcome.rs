//! The outcome of a task.

use std::io;

use serde::Serialize;

use crate::json;

/// The text for standard output, the error for standard error, and whether the task
/// succeeded.
pub(crate) struct Outcome {
    pub(crate) output: String,
    pub(crate) error_text: Option<String>,
    pub(crate) success: bool,
}

impl Outcome {
    /// The outcome of a task that could not start.
    #[expect(clippy::needless_pass_by_value, reason = "it consumes the error")]
    pub(crate) fn of_error(error: io::Error) -> Self {
        Self {
            output: String::new(),
            error_text: Some(error.to_string()),
            success: false,
        }
    }

    /// The outcome of a report: a JSON document that holds the error, or `text` with the
    /// error beside it.
    pub(crate) fn of_report<R: Serialize>(
        json: bool,
        report: &R,
        error: Option<&String>,
        text: impl FnOnce(&R) -> String,
    ) -> Self {
        let success = error.is_none();
        if json {
            return Self {
                output: json::render(report),
                error_text: None,
                success,
            };
        }
        Self {
            output: text(report),
            error_text: error.cloned(),
            success,
        }
    }
}
