//! An event loop without the feature `verbs`.

/// No devices.
#[derive(Debug, Default)]
pub(crate) struct Extensions {}
