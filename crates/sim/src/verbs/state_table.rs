//! The changes of a queue pair's state, and the attributes that each takes.

use rdmacm_abi::{QpAttrMask, QpState};

/// What a change of state takes besides the state.
struct Attributes {
    required: QpAttrMask,
    optional: QpAttrMask,
}

const NONE: Attributes = Attributes {
    required: QpAttrMask::empty(),
    optional: QpAttrMask::empty(),
};

/// What INIT is about.
const INIT: QpAttrMask = QpAttrMask::PKEY_INDEX
    .union(QpAttrMask::PORT)
    .union(QpAttrMask::ACCESS_FLAGS);

/// What may change while a queue pair sends.
const RTS: QpAttrMask = QpAttrMask::CUR_STATE
    .union(QpAttrMask::ALT_PATH)
    .union(QpAttrMask::ACCESS_FLAGS)
    .union(QpAttrMask::MIN_RNR_TIMER)
    .union(QpAttrMask::PATH_MIG_STATE);

/// The entries of `qp_state_table` for reliable connected queue pairs, without those of a
/// drained send queue.
fn attributes(from: QpState, to: QpState) -> Option<Attributes> {
    Some(match (from, to) {
        (QpState::RESET, QpState::RESET)
        | (
            QpState::INIT | QpState::RTR | QpState::RTS | QpState::ERR,
            QpState::RESET | QpState::ERR,
        ) => NONE,
        (QpState::RESET, QpState::INIT) => Attributes {
            required: INIT,
            ..NONE
        },
        (QpState::INIT, QpState::INIT) => Attributes {
            optional: INIT,
            ..NONE
        },
        (QpState::INIT, QpState::RTR) => Attributes {
            required: QpAttrMask::AV
                | QpAttrMask::PATH_MTU
                | QpAttrMask::DEST_QPN
                | QpAttrMask::RQ_PSN
                | QpAttrMask::MAX_DEST_RD_ATOMIC
                | QpAttrMask::MIN_RNR_TIMER,
            optional: QpAttrMask::ALT_PATH | QpAttrMask::ACCESS_FLAGS | QpAttrMask::PKEY_INDEX,
        },
        (QpState::RTR, QpState::RTS) => Attributes {
            required: QpAttrMask::TIMEOUT
                | QpAttrMask::RETRY_CNT
                | QpAttrMask::RNR_RETRY
                | QpAttrMask::SQ_PSN
                | QpAttrMask::MAX_QP_RD_ATOMIC,
            optional: RTS,
        },
        (QpState::RTS, QpState::RTS) => Attributes {
            optional: RTS,
            ..NONE
        },
        _ => return None,
    })
}

/// Whether a queue pair takes these attributes for a change of its state
/// (`ib_modify_qp_is_ok`).
pub(super) fn is_allowed(from: QpState, to: QpState, mask: QpAttrMask) -> bool {
    attributes(from, to).is_some_and(|Attributes { required, optional }| {
        let allowed = required | optional | QpAttrMask::STATE;
        mask.contains(required) && allowed.contains(mask)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [QpState; 5] = [
        QpState::RESET,
        QpState::INIT,
        QpState::RTR,
        QpState::RTS,
        QpState::ERR,
    ];

    /// The states that a queue pair in this one moves to.
    fn next(from: QpState) -> Vec<QpState> {
        let is_known = |to: &&QpState| attributes(from, **to).is_some();
        STATES.iter().filter(is_known).copied().collect()
    }

    #[test]
    fn the_states_follow_each_other() {
        use QpState as State;
        let (begin, end) = (State::RESET, State::ERR);
        assert_eq!(next(begin), [begin, State::INIT]);
        assert_eq!(next(State::INIT), [begin, State::INIT, State::RTR, end]);
        assert_eq!(next(State::RTR), [begin, State::RTS, end]);
        assert_eq!(next(State::RTS), [begin, State::RTS, end]);
        assert_eq!(next(end), [begin, end]);
    }

    #[test]
    fn an_attribute_is_neither_missing_nor_too_much() {
        let state = QpAttrMask::STATE;
        let init = |mask| is_allowed(QpState::RESET, QpState::INIT, mask);
        assert!(init(state | INIT) && init(INIT));
        assert!(!init(state | (INIT - QpAttrMask::PORT)));
        assert!(!init(state | INIT | QpAttrMask::QKEY));
        // The state that the caller believes in matters only where requests may be sent.
        let current = state | QpAttrMask::CUR_STATE;
        assert!(is_allowed(QpState::RTS, QpState::RTS, current));
        assert!(!is_allowed(QpState::RTS, QpState::ERR, current));
    }
}
