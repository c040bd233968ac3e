//! What the library needed before its data path, events and waits were measured: user
//! instructions for an operation, on Linux 7.3.

/// A device, a workload and its instructions.
const INSTRUCTIONS: &[(&str, &str, f64)] = &[
    ("rxe", "id", 6_286.0),
    ("rxe", "id-create", 1_078.0),
    ("rxe", "id-destroy", 881.0),
    ("rxe", "event", 1_517.0),
    ("rxe", "resolve-numeric", 22_466.0),
    ("rxe", "first-address", 378_000.0),
    ("rxe", "first-address-static", 139_000.0),
    ("rxe", "post-send", 785.0),
    ("siw", "post-send", 746.0),
    ("rxe", "poll-send", 987.0),
    ("siw", "poll-send", 1_010.0),
    ("rxe", "post-receive", 750.0),
    ("siw", "post-receive", 742.0),
    ("rxe", "next-completion-late", 13_000.0),
    ("rxe", "round-trip", 10_800.0),
    ("siw", "round-trip", 18_000.0),
    ("rxe", "round-trip-tokio", 16_800.0),
    ("siw", "round-trip-tokio", 8_000.0),
    ("rxe", "connect-tokio", 53_000.0),
    ("rxe", "queue-pair-100", 29_600.0),
    ("rxe", "queue-pair-1000", 66_600.0),
];

/// The instructions of a workload then.
pub(crate) fn instructions(device: &str, workload: &str) -> Option<f64> {
    let found = INSTRUCTIONS.iter();
    let mut found = found.filter(|row| (row.0, row.1) == (device, workload));
    found.next().map(|row| row.2)
}
