//! Files that stand between a channel and another file.

/// Implements `rdmacm_core::ucma::UcmaFile` for a type, which executes commands as the closure
/// says and passes all other calls to the file in its field `$file`.
#[macro_export]
macro_rules! ucma_file_over {
    ($type:ident, $file:tt, |$this:ident, $call:ident| $execute:expr) => {
        impl ::rdmacm_core::ucma::UcmaFile for $type {
            fn execute(&self, $call: &mut ::rdmacm_core::ucma::Call<'_>) -> ::std::io::Result<()> {
                let $this = self;
                $execute
            }

            fn wait(
                &self,
                until: Option<::std::time::Instant>,
                other: Option<::std::os::fd::BorrowedFd<'_>>,
            ) -> ::std::io::Result<bool> {
                self.$file.wait(until, other)
            }

            fn wake(&self) {
                self.$file.wake();
            }

            fn take_wake(&self) -> bool {
                self.$file.take_wake()
            }

            fn notify(&self) {
                self.$file.notify();
            }

            fn take_notification(&self) -> bool {
                self.$file.take_notification()
            }

            fn now(&self) -> ::std::time::Instant {
                self.$file.now()
            }

            fn next_due(&self) -> Option<::std::time::Instant> {
                self.$file.next_due()
            }

            fn advance_to(&self, time: ::std::time::Instant) {
                self.$file.advance_to(time);
            }

            fn readiness(&self) -> ::std::os::fd::BorrowedFd<'_> {
                self.$file.readiness()
            }

            fn ucma_fd(&self) -> Option<::std::os::fd::BorrowedFd<'_>> {
                self.$file.ucma_fd()
            }
        }
    };
}
