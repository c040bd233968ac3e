//! What siw overlooks.
//!
//! Between its answer to a connect request and the moment it listens to the
//! connection's data, siw takes no notice of what arrives. A peer that sends one
//! message at once and waits for an answer waits for ever: any two programs do, C or
//! not. More data would wake it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use rdmacm_tests::Site;

/// How often a test may meet with it.
const TIMES: usize = 3;

/// What a test says that met with it: a program did not go on, or its client got no
/// answer to the first thing it sent.
const SIGNS: [&str; 3] = [
    "timed out waiting on channel",
    "ping 0 was not answered within",
    "the server did not answer within",
];

/// Plays a test again if its peers waited for what was overlooked.
pub(crate) fn play(run: fn(&Site), site: &Site) {
    for _ in 1..TIMES {
        match catch_unwind(AssertUnwindSafe(|| run(site))) {
            Ok(()) => return,
            Err(panic) if !may_be(panic.as_ref()) => resume_unwind(panic),
            Err(_) => {}
        }
    }
    run(site);
}

fn may_be(panic: &(dyn Any + Send)) -> bool {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    words.is_some_and(|words| SIGNS.iter().any(|sign| words.contains(sign)))
}
