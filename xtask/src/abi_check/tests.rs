//! Compares tables that contain errors with headers that the test writes.

use std::fs;
use std::path::{Path, PathBuf};

use rdmacm_abi::layout::{Constant, FieldLayout, Origin, StructLayout};

use super::report::Difference;
use super::*;

const OLD: Origin = Origin::Kernel { since: (6, 1) };
const NEW: Origin = Origin::Kernel { since: (7, 2) };

const FIELDS: &[FieldLayout] = &[
    field("uid", "uid", OLD, 0, 8),
    field("number", "id", OLD, 8, 4),
    field("tail", "tail", OLD, 12, 0),
];

const fn field(
    name: &'static str,
    c_name: &'static str,
    origin: Origin,
    offset: usize,
    size: usize,
) -> FieldLayout {
    FieldLayout {
        name,
        c_name,
        origin,
        offset,
        size,
    }
}

const HEAD: StructLayout = StructLayout {
    name: "Head",
    c_name: "test_head",
    c_header: "test/head.h",
    origin: OLD,
    size: 16,
    c_align: 8,
    align: 8,
    fields: FIELDS,
    views: &[field("extra", "extra", NEW, 8, 4)],
};

const COLOUR: Constant = Constant {
    name: "Colour::RED",
    c_name: "TEST_RED",
    c_header: "test/head.h",
    origin: OLD,
    value: 7,
};

const OLD_HEADER: &str = "struct test_head {
    unsigned long long uid;
    unsigned int id;
    unsigned int tail[];
};
enum { TEST_RED = 7 };
";

const NEW_HEADER: &str = "struct test_head {
    unsigned long long uid;
    union { unsigned int id; unsigned int extra; };
    unsigned int tail[];
};
enum { TEST_RED = 7 };
";

/// A directory of headers, removed when dropped.
struct Headers {
    directory: PathBuf,
}

impl Headers {
    fn new(test: &str, version: (u32, u32), header: &str) -> Self {
        let name = format!("abi-check-test-{}-{test}-{}", std::process::id(), version.0);
        let directory = std::env::temp_dir().join(name);
        let headers = Self { directory };
        let code = (version.0 << 16) + (version.1 << 8);
        headers.write(
            "linux/version.h",
            &format!("#define LINUX_VERSION_CODE {code}\n"),
        );
        headers.write("test/head.h", header);
        headers
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.directory.join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
    }

    fn set(&self, label: &str) -> HeaderSet {
        HeaderSet {
            label: label.to_owned(),
            include_dirs: vec![self.directory.clone()],
        }
    }
}

impl Drop for Headers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn table() -> Table {
    Table {
        structs: vec![HEAD],
        constants: vec![COLOUR],
    }
}

/// Compares, and returns the report and the text.
fn compare(table: &Table, sets: &[HeaderSet]) -> (Report, String) {
    let mut text = Vec::new();
    let report = check_table(table, sets, &mut text).unwrap();
    (report, String::from_utf8(text).unwrap())
}

#[test]
fn equal_tables_have_no_difference() {
    let old = Headers::new("same", (6, 1), OLD_HEADER);
    let new = Headers::new("same", (7, 2), NEW_HEADER);
    let (report, text) = compare(&table(), &[old.set("old"), new.set("new")]);
    assert!(report.is_ok(), "{text}");
    // Structure, three fields and a constant in both, the view in one.
    assert_eq!(report.same, 11);
    assert_eq!(
        report.absent,
        [("old".to_owned(), "test_head.extra".to_owned())]
    );
    assert!(text.contains("absent"));
    assert!(text.contains("new 7.2.0"));
}

#[test]
fn a_comparison_of_nothing_is_no_success() {
    let old = Headers::new("nothing", (3, 0), "");
    let (report, text) = compare(&table(), &[old.set("old")]);
    assert_eq!((report.same, report.differences.len()), (0, 0), "{text}");
    assert!(!report.is_ok());
}

#[test]
fn a_wrong_offset_is_reported_with_the_field() {
    const WRONG: &[FieldLayout] = &[FIELDS[0], field("number", "id", OLD, 12, 4)];
    let mut table = table();
    table.structs[0].fields = WRONG;
    let headers = Headers::new("offset", (7, 2), NEW_HEADER);
    let (report, text) = compare(&table, &[headers.set("new")]);
    let wrong = Difference {
        set: "new".to_owned(),
        c_name: "test_head.id".to_owned(),
        rust_name: "Head.number".to_owned(),
        what: "offset",
        ours: 12,
        theirs: Some(8),
    };
    assert_eq!(report.differences, [wrong]);
    assert!(text.contains(
        "DIFFERS: test_head.id (Head.number): offset is 12 here and 8 in the headers 'new'"
    ));
}

#[test]
fn wrong_sizes_alignments_and_values_are_reported() {
    let mut table = table();
    table.structs[0].size = 24;
    table.structs[0].c_align = 4;
    table.constants[0].value = 8;
    let headers = Headers::new("rest", (7, 2), NEW_HEADER);
    let (report, _) = compare(&table, &[headers.set("new")]);
    let what: Vec<_> = report.differences.iter().map(|wrong| wrong.what).collect();
    assert_eq!(what, ["size", "alignment", "value"]);
}

#[test]
fn a_declaration_missing_from_a_new_enough_header_is_a_difference() {
    let headers = Headers::new("lacks", (7, 2), OLD_HEADER);
    let (report, text) = compare(&table(), &[headers.set("new")]);
    assert!(!report.is_ok());
    assert!(
        report
            .differences
            .iter()
            .all(|wrong| { wrong.c_name == "test_head.extra" && wrong.theirs.is_none() })
    );
    assert!(text.contains("missing from the headers 'new'"));
}

#[test]
fn only_recent_names_may_be_missing_from_a_user_space_header() {
    let mut table = table();
    table.constants = ["TEST_SKY", "TEST_SKI"]
        .map(|c_name| Constant {
            c_name,
            c_header: "test/library.h",
            origin: Origin::UserSpace { is_recent: false },
            ..COLOUR
        })
        .into();
    let headers = Headers::new("library", (7, 2), NEW_HEADER);
    let (report, text) = compare(&table, &[headers.set("new")]);
    assert!(report.is_ok(), "{text}");
    assert_eq!(report.absent.len(), 2);

    headers.write("test/library.h", "enum { TEST_SKY = 7 };\n");
    let (report, text) = compare(&table, &[headers.set("new")]);
    assert!(report.absent.is_empty());
    assert_eq!(report.differences.len(), 1, "{text}");
    assert_eq!(report.differences[0].c_name, "TEST_SKI");
    assert_eq!(report.differences[0].theirs, None);

    table.constants[1].origin = Origin::UserSpace { is_recent: true };
    let (report, text) = compare(&table, &[headers.set("new")]);
    assert!(report.is_ok(), "{text}");
    assert_eq!(report.absent.len(), 1);
}

#[test]
fn a_header_that_does_not_compile_is_an_error() {
    let headers = Headers::new("broken", (7, 2), "struct test_head { nonsense; };\n");
    let result = check_table(&table(), &[headers.set("new")], &mut Vec::new());
    assert!(result.is_err());
}

#[test]
fn a_wrong_offset_in_the_real_table_is_reported() {
    let mut table = Table::of_crate();
    let event = table
        .structs
        .iter_mut()
        .find(|layout| layout.name == "EventResponse")
        .unwrap();
    let mut fields = event.fields.to_vec();
    fields[4].offset += 4;
    event.fields = fields.leak();
    let installed = HeaderSet {
        label: "installed".to_owned(),
        include_dirs: Vec::new(),
    };
    let (report, _) = compare(&table, &[installed]);
    let differences: Vec<_> = report.differences.iter().map(ToString::to_string).collect();
    assert_eq!(
        differences,
        [
            "rdma_ucm_event_resp.param (EventResponse.param): offset is 24 here and 20 in the \
          headers 'installed'"
        ]
    );
}
