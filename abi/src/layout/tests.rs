//! The tables against the compiler's view, by another road.

use core::ops::Range;
use std::collections::BTreeSet;
use std::vec::Vec;

use super::*;

/// A structure, a field and the bytes it takes.
pub(in crate::layout) type Span = (&'static str, &'static str, Range<usize>);

/// Fields and reserved words leave no hole and do not overlap.
#[test]
fn fields_tile_every_structure() {
    for layout in structs() {
        let mut end = 0;
        for field in layout.fields {
            assert_eq!(field.offset, end, "{}.{}", layout.name, field.name);
            end += field.size;
        }
        assert_eq!(end, layout.size, "{}", layout.name);
    }
}

#[test]
fn views_lie_inside_a_field() {
    for layout in structs() {
        for view in layout.views {
            let inside = layout.fields.iter().any(|field| {
                field.offset <= view.offset && view.offset + view.size <= field.offset + field.size
            });
            assert!(inside, "{}.{}", layout.name, view.name);
        }
    }
}

#[test]
fn spans_are_those_of_memoffset() {
    let spans: Vec<Span> = [
        parts::spans(),
        requests::spans(),
        responses::spans(),
        parts::records::spans(),
        parts::verbs::spans(),
        parts::in4::spans(),
        parts::in6::spans(),
        parts::storage::spans(),
        library::ib::spans(),
        library::sa::spans(),
        uverbs::spans(),
        uverbs::data::spans(),
        uverbs::rxe::spans(),
        uverbs::siw::spans(),
    ]
    .concat();
    let table: Vec<Span> = structs()
        .flat_map(|layout| layout.fields.iter().map(|field| (layout.name, field)))
        .map(|(name, field)| (name, field.name, field.offset..field.offset + field.size))
        .collect();
    assert_eq!(table, spans);
}

#[test]
fn constants_have_one_value_each() {
    let mut names = BTreeSet::new();
    for constant in constants() {
        assert!(names.insert(constant.c_name), "{} twice", constant.c_name);
    }
    assert!(names.contains("RDMA_USER_CM_CMD_GET_OPTION"));
}
