//! The schema of the document, as `docs/resolve.schema.json` has it.

use std::path::Path;

use schemars::generate::SchemaSettings;

use super::document::Document;

/// The one is made from the other, so a document is as the schema says. Run with
/// `RDMACM_WRITE_SCHEMA=1` to write it down anew.
#[test]
fn the_schema_is_written_down() {
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
