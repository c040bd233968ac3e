//! The shape a kernel integer takes: a number of which some values have names.

/// Defines newtypes over kernel integers.
///
/// `NAME = value => "C_NAME"`, with `since (7, 2)` where Linux 6.1 lacks it.
/// `in kernel "header.h"` or `in user_space "header.h"` exports the constants
/// for comparison with that C header; without it no header has them.
macro_rules! numbers {
    ($(
        $(#[$meta:meta])*
        pub struct $type:ident($int:ident) $(in $origin:ident $header:literal)? {
            $(
                $(#[$value_meta:meta])*
                $name:ident = $value:literal => $c_name:literal $(since $since:tt)?,
            )+
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            ::zerocopy::FromBytes, ::zerocopy::IntoBytes,
            ::zerocopy::KnownLayout, ::zerocopy::Immutable,
        )]
        #[repr(transparent)]
        pub struct $type($int);

        impl $type {
            $(
                $(#[$value_meta])*
                #[doc(alias = $c_name)]
                pub const $name: Self = Self($value);
            )+

            /// Of any number the kernel may return.
            #[must_use]
            pub const fn new(number: $int) -> Self {
                Self(number)
            }

            /// The kernel's number.
            #[must_use]
            pub const fn number(self) -> $int {
                self.0
            }

            /// The constant's name in this crate, if the number has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }

        constants! {
            $type [$($origin $header)?]
            $($name = $value => $c_name [$($since)?],)+
        }

        /// The name, or the number where there is none.
        impl ::core::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($type), "({})"), self.0),
                }
            }
        }

        impl From<$int> for $type {
            fn from(number: $int) -> Self {
                Self(number)
            }
        }

        impl From<$type> for $int {
            fn from(number: $type) -> Self {
                number.0
            }
        }
    )+};
}

/// Defines sets of bits over kernel integers; the same notation as `numbers!`.
macro_rules! bits {
    ($(
        $(#[$meta:meta])*
        pub struct $type:ident($int:ident) $(in $origin:ident $header:literal)? {
            $(
                // Not `meta`, which `bitflags!` could not take apart.
                $(#[$value_meta:ident $($value_args:tt)*])*
                $name:ident = $value:literal => $c_name:literal $(since $since:tt)?,
            )+
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            ::zerocopy::FromBytes, ::zerocopy::IntoBytes,
            ::zerocopy::KnownLayout, ::zerocopy::Immutable,
        )]
        #[repr(transparent)]
        pub struct $type($int);

        ::bitflags::bitflags! {
            impl $type: $int {
                $(
                    $(#[$value_meta $($value_args)*])*
                    #[doc(alias = $c_name)]
                    const $name = $value;
                )+
                // The kernel may set bits that have no name here.
                const _ = !0;
            }
        }

        constants! {
            $type [$($origin $header)?]
            $($name = $value => $c_name [$($since)?],)+
        }

        /// The names of the bits set, joined by `|`; the rest in hexadecimal.
        impl ::core::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::bitflags::parser::to_writer(self, f)
            }
        }
    )+};
}

/// Exports a type's constants under their C names.
macro_rules! constants {
    ($type:ident [] $($rest:tt)*) => {};
    ($type:ident [$origin:ident $header:literal]
        $($name:ident = $value:literal => $c_name:literal [$($since:tt)?],)+
    ) => {
        impl $type {
            pub(crate) const CONSTANTS: &'static [$crate::layout::Constant] = &[
                $($crate::layout::Constant {
                    name: concat!(stringify!($type), "::", stringify!($name)),
                    c_name: $c_name,
                    c_header: $header,
                    origin: origin!($origin $($since)?),
                    value: $value,
                },)+
            ];
        }
    };
}

/// Where a C declaration comes from: `kernel`, `kernel (7, 2)`, `user_space` or
/// `user_space (7, 2)`.
macro_rules! origin {
    (kernel) => {
        $crate::layout::Origin::Kernel { since: (6, 1) }
    };
    (kernel ($major:literal, $minor:literal)) => {
        $crate::layout::Origin::Kernel {
            since: ($major, $minor),
        }
    };
    (user_space) => {
        $crate::layout::Origin::UserSpace { is_recent: false }
    };
    (user_space ($major:literal, $minor:literal)) => {
        $crate::layout::Origin::UserSpace { is_recent: true }
    };
}
