//! The rows of the comparison.

use rdmacm_abi::layout::{FieldLayout, Origin, StructLayout};

use super::Table;

/// One row of the table: the numbers of one C declaration.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The structure's name without `struct`; empty for a constant.
    pub(super) group: &'static str,
    /// The C declaration: `rdma_ucm_event_resp.uid`.
    pub(super) c_name: String,
    /// The Rust declaration: `EventResponse.uid`.
    pub(super) rust_name: String,
    /// The header that declares it.
    pub(super) header: &'static str,
    /// Where the header comes from.
    pub(super) origin: Origin,
    /// The numbers.
    pub(super) cells: Vec<Cell>,
}

/// One number of a row.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// What the number is: `size`, `offset`.
    pub(super) what: &'static str,
    /// The C expression.
    pub(super) expression: String,
    /// The number in Rust.
    pub(super) ours: u64,
}

pub(super) fn rows_of_table(table: &Table) -> Vec<Row> {
    let structs = table.structs.iter().flat_map(rows_of_struct);
    let constants = table.constants.iter().map(|constant| Row {
        group: "",
        c_name: constant.c_name.to_owned(),
        rust_name: constant.name.to_owned(),
        header: constant.c_header,
        origin: constant.origin,
        cells: vec![Cell {
            what: "value",
            expression: constant.c_name.to_owned(),
            ours: constant.value,
        }],
    });
    structs.chain(constants).collect()
}

fn rows_of_struct(layout: &StructLayout) -> impl Iterator<Item = Row> {
    let c_name = layout.c_name;
    let whole = Row {
        group: c_name,
        c_name: c_name.to_owned(),
        rust_name: layout.name.to_owned(),
        header: layout.c_header,
        origin: layout.origin,
        cells: vec![
            cell("size", format!("sizeof(struct {c_name})"), layout.size),
            cell(
                "alignment",
                format!("_Alignof(struct {c_name})"),
                layout.c_align,
            ),
        ],
    };
    let members = layout.fields.iter().chain(layout.views);
    std::iter::once(whole).chain(members.map(|field| row_of_field(layout, field)))
}

fn row_of_field(layout: &StructLayout, field: &FieldLayout) -> Row {
    let (c_name, c_field) = (layout.c_name, field.c_name);
    let mut cells = vec![cell(
        "offset",
        format!("offsetof(struct {c_name}, {c_field})"),
        field.offset,
    )];
    // A flexible array has no size.
    if field.size > 0 {
        let expression = format!("sizeof(((struct {c_name} *)0)->{c_field})");
        cells.push(cell("size", expression, field.size));
    }
    Row {
        group: c_name,
        c_name: format!("{c_name}.{c_field}"),
        rust_name: format!("{}.{}", layout.name, field.name),
        header: layout.c_header,
        origin: field.origin,
        cells,
    }
}

fn cell(what: &'static str, expression: String, ours: usize) -> Cell {
    Cell {
        what,
        expression,
        ours: ours as u64,
    }
}
