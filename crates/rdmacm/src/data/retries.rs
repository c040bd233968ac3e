//! Retries of requests, which end: those to a dead peer fail at some time.

use rdmacm_core::{ConnParam, QpAttr};

/// So many retries mean no limit on rxe (`rxe_completer`).
const ENDLESS_RETRIES: u8 = 7;

fn limited(retries: u8) -> u8 {
    retries.min(ENDLESS_RETRIES - 1)
}

/// Limits the retries of both sides of a connection that this side requests.
pub(crate) fn limit_retries(param: &mut ConnParam) {
    let retries = limited(param.retries());
    *param = std::mem::take(param).retry_count(retries);
}

/// Limits the retries of this side, which the connecting side has chosen.
pub(crate) fn limit_attr_retries(attr: &mut QpAttr) {
    attr.retry_count = limited(attr.retry_count);
}
