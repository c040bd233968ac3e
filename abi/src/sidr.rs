//! Why a datagram service was not resolved.

numbers! {
    /// The answer to a service id resolution: the status of an UNREACHABLE
    /// event of a UD id if it is positive (IBTA Vol 1 §12.11).
    pub struct SidrStatus(u8) {
        /// The service has a queue pair.
        SUCCESS = 0 => "IB_SIDR_SUCCESS",
        /// Nobody listens.
        UNSUPPORTED = 1 => "IB_SIDR_UNSUPPORTED",
        /// The program on the other side refused.
        REJECT = 2 => "IB_SIDR_REJECT",
        /// No queue pair is left.
        NO_QP = 3 => "IB_SIDR_NO_QP",
        /// Ask elsewhere.
        REDIRECT = 4 => "IB_SIDR_REDIRECT",
        /// The version is not supported.
        UNSUPPORTED_VERSION = 5 => "IB_SIDR_UNSUPPORTED_VERSION",
    }
}

impl SidrStatus {
    /// The answer in the status of an UNREACHABLE event, if it is one: a
    /// negative errno is none.
    #[must_use]
    pub fn from_status(status: i32) -> Option<Self> {
        u8::try_from(status)
            .ok()
            .filter(|&code| code != 0)
            .map(Self)
    }

    /// What it means, in a few words, if the number has a meaning.
    #[must_use]
    pub const fn text(self) -> Option<&'static str> {
        Some(match self {
            Self::SUCCESS => "resolved",
            Self::UNSUPPORTED => "no listener",
            Self::REJECT => "refused by the program or gone",
            Self::NO_QP => "no queue pair left",
            Self::REDIRECT => "redirected elsewhere",
            Self::UNSUPPORTED_VERSION => "version not supported",
            _ => return None,
        })
    }
}
