//! The macro behind the tables, and what it asserts with.

/// A header's structures:
/// `Rust = "c_name", size bytes, align bytes { field = "c_name" @ offset + size, }`.
///
/// `align 1 for 4` where C's alignment is 4. After the fields, `+ views` lists
/// members of C unions: `"c_name" @ offset + size`.
macro_rules! layouts {
    (
        in $origin:ident $header:literal;
        $(
            $type:ident = $c_name:literal $(since $since:tt)?,
            size $size:literal, align $align:literal $(for $c_align:literal)? {
                $($field:ident = $c_field:literal @ $offset:literal + $field_size:literal,)+
            }
            $(+ views {
                $($view:literal $(since $view_since:tt)? @ $view_offset:literal + $view_size:literal,)+
            })?
        )+
    ) => {
        pub(in crate::layout) const STRUCTS: &[$crate::layout::StructLayout] = &[$(
            $crate::layout::StructLayout {
                name: stringify!($type),
                c_name: $c_name,
                c_header: $header,
                origin: origin!($origin $($since)?),
                size: $size,
                c_align: $crate::layout::assertions::last(&[$align $(, $c_align)?]),
                align: $align,
                fields: {
                    const ORIGIN: $crate::layout::Origin = origin!($origin $($since)?);
                    &[$($crate::layout::FieldLayout {
                        name: stringify!($field),
                        c_name: $c_field,
                        origin: ORIGIN,
                        offset: $offset,
                        size: $field_size,
                    },)+]
                },
                views: &[$($($crate::layout::FieldLayout {
                    name: $view,
                    c_name: $view,
                    origin: origin!($origin $($view_since)?),
                    offset: $view_offset,
                    size: $view_size,
                },)+)?],
            },
        )+];

        $(
            const _: () = {
                use $crate::layout::assertions::{field_size, native_align};

                assert!(size_of::<$type>() == $size);
                assert!(align_of::<$type>() == native_align($align));
                $(
                    assert!(core::mem::offset_of!($type, $field) == $offset);
                    assert!(field_size(|object: &$type| &object.$field) == $field_size);
                )+
            };

            // Names every field: one that the table forgets is an error.
            const _: fn($type) = |object| {
                let $type { $($field: _,)+ } = object;
            };
        )+

        #[cfg(test)]
        pub(in crate::layout) fn spans() -> std::vec::Vec<$crate::layout::tests::Span> {
            std::vec![$($(
                (stringify!($type), stringify!($field), memoffset::span_of!($type, $field)),
            )+)+]
        }
    };
}

/// The size of the field that `_projection` reads.
pub(super) const fn field_size<T, F>(_projection: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// 32-bit x86 aligns a `u64` to 4. The kernel copies bytes, and every offset
/// is a multiple of 8 by itself, so nothing else changes there.
pub(super) const fn native_align(align: usize) -> usize {
    if align > align_of::<u64>() {
        align_of::<u64>()
    } else {
        align
    }
}

/// The last of one or two numbers.
pub(super) const fn last(numbers: &[usize]) -> usize {
    numbers[numbers.len() - 1]
}
