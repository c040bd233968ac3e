//! The schema of the document, which is `docs/resolve.schema.json`.

use std::path::Path;

use schemars::generate::SchemaSettings;

use super::document::Document;

/// Generates the schema from the types and compares it with the file. Run with
/// `RDMACM_WRITE_SCHEMA=1` to update the file.
#[test]
fn the_schema_file_is_current() {
    let settings = SchemaSettings::default().for_serialize();
    let schema = settings
        .into_generator()
        .into_root_schema_for::<Document<'static>>();
    let made = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/resolve.schema.json");
    if std::env::var_os("RDMACM_WRITE_SCHEMA").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written, made);
}
