//! The layouts and constants of this crate as tables, for comparison with C
//! headers.
//!
//! One table drives three things. Its numbers, which are the headers', are
//! asserted of the Rust structures at compile time. A field that the table
//! lacks fails to compile. And [`structs`] exports it, so that a test can compare
//! it with the headers of a machine by a C compiler.

#[macro_use]
mod assertions;

mod constants;
mod library;
mod parts;
mod requests;
mod responses;
mod uverbs;

/// Where a C declaration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the kernel's exported headers.
    Kernel {
        /// A kernel of this version, major and minor, or a later one, has it;
        /// an older one may lack it. Not the first that had it: this project
        /// looks at 6.1 and 7.2 only.
        since: (u8, u8),
    },
    /// From rdma-core's headers, which a machine may lack.
    UserSpace {
        /// It is newer than Linux 6.1, so older versions of rdma-core lack it.
        is_recent: bool,
    },
}

/// A structure's layout, as its C header has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructLayout {
    /// The name in this crate.
    pub name: &'static str,
    /// The name in C, after `struct`.
    pub c_name: &'static str,
    /// The header that declares it, as included.
    pub c_header: &'static str,
    /// Where that header comes from.
    pub origin: Origin,
    /// Bytes it takes.
    pub size: usize,
    /// Its alignment in C.
    pub c_align: usize,
    /// Its alignment in Rust; smaller than in C where the structure stands
    /// only in arrays after a response's head.
    pub align: usize,
    /// Its fields, in order.
    pub fields: &'static [FieldLayout],
    /// Members of its C unions, which in Rust are views, not fields.
    pub views: &'static [FieldLayout],
}

/// Where a field lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// The name in this crate; that in C for a view.
    pub name: &'static str,
    /// The name in C.
    pub c_name: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// Bytes from the structure's start.
    pub offset: usize,
    /// Bytes it takes; 0 for C's flexible arrays.
    pub size: usize,
}

/// A constant's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// The name in this crate, with its type's.
    pub name: &'static str,
    /// The name in C.
    pub c_name: &'static str,
    /// The header that declares it, as included.
    pub c_header: &'static str,
    /// Where that header comes from.
    pub origin: Origin,
    /// The value.
    pub value: u64,
}

/// Every structure of this crate that has a name in C.
pub fn structs() -> impl Iterator<Item = &'static StructLayout> {
    [
        parts::STRUCTS,
        requests::STRUCTS,
        responses::STRUCTS,
        parts::records::STRUCTS,
        parts::verbs::STRUCTS,
        parts::in4::STRUCTS,
        parts::in6::STRUCTS,
        parts::storage::STRUCTS,
        library::ib::STRUCTS,
        library::sa::STRUCTS,
        uverbs::STRUCTS,
        uverbs::data::STRUCTS,
        uverbs::rxe::STRUCTS,
        uverbs::siw::STRUCTS,
    ]
    .into_iter()
    .flatten()
}

/// Every constant of this crate that a C header declares.
pub fn constants() -> impl Iterator<Item = &'static Constant> {
    constants::ALL.iter().copied().flatten()
}

#[cfg(test)]
mod tests;
