//! What a task has to say.

use std::io;

use serde::Serialize;

use crate::json;

/// What a task has to say: the text for standard output, what went wrong for
/// standard error, and whether it succeeded.
pub(crate) struct Outcome {
    pub(crate) output: String,
    pub(crate) complaint: Option<String>,
    pub(crate) success: bool,
}

impl Outcome {
    /// Of a task that did not even begin.
    #[expect(clippy::needless_pass_by_value, reason = "the error's way ends here")]
    pub(crate) fn of_error(error: io::Error) -> Self {
        Self {
            output: String::new(),
            complaint: Some(error.to_string()),
            success: false,
        }
    }

    /// Of a report that says itself what went wrong: as the document it is, or in
    /// words with that beside them.
    pub(crate) fn of_report<R: Serialize>(
        json: bool,
        report: &R,
        error: Option<&String>,
        words: impl FnOnce(&R) -> String,
    ) -> Self {
        let success = error.is_none();
        if json {
            return Self {
                output: json::render(report),
                complaint: None,
                success,
            };
        }
        Self {
            output: words(report),
            complaint: error.cloned(),
            success,
        }
    }
}
