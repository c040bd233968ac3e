//! Rendering one JSON document.

use serde::Serialize;

pub(crate) fn render(document: &impl Serialize) -> String {
    // The documents are structs of strings and numbers, which always serialize.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
