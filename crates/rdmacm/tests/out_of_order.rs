//! Calls out of order do not compile, and the compiler says why in words that
//! help. Each file of `out_of_order/` begins with what it must say.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What the compiler says of each file.
type Diagnoses = BTreeMap<String, Vec<String>>;

#[test]
fn calls_out_of_order_do_not_compile() {
    let cases = cases();
    assert!(!cases.is_empty());
    let diagnoses = check(&cases);
    for (name, path) in &cases {
        let said = diagnoses.get(name).cloned().unwrap_or_default();
        let text = fs::read_to_string(path).unwrap();
        let expected: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("//! error: "))
            .collect();
        assert!(!expected.is_empty(), "{name} expects nothing");
        for words in expected {
            let found = said.iter().any(|diagnosis| diagnosis.contains(words));
            assert!(found, "{name}: no {words:?} in {said:#?}");
        }
    }
    // What is in order compiles, so the errors are those of the order.
    assert_eq!(diagnoses.get("in_order"), None);
}

fn cases() -> BTreeMap<String, PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/out_of_order");
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| file.unwrap().path())
        .map(|path| {
            let stem = path.file_stem().unwrap();
            (stem.to_str().unwrap().to_owned(), path.clone())
        })
        .filter(|(name, _)| name != "in_order")
        .collect()
}

/// Checks every file as a program of its own, in a package that depends on this
/// one as a user's would.
fn check(cases: &BTreeMap<String, PathBuf>) -> Diagnoses {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("out-of-order");
    fs::create_dir_all(&package).unwrap();
    let mut manifest = format!(
        "[package]\nname = \"out-of-order\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [workspace]\n\n[dependencies]\nrdmacm = {{ path = {root}, features = [\"tokio\"] }}\n",
        root = quoted(root)
    );
    let in_order = root.join("tests/out_of_order/in_order.rs");
    let in_order = ("in_order".to_owned(), in_order);
    for (name, path) in cases.iter().chain([(&in_order.0, &in_order.1)]) {
        writeln!(
            manifest,
            "\n[[bin]]\nname = {name:?}\npath = {}",
            quoted(path)
        )
        .unwrap();
    }
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    // The versions the workspace was tested with.
    fs::copy(root.join("../../Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["check", "--bins", "--keep-going", "--message-format=json"])
        .arg("--target-dir")
        .arg(package.join("target"))
        .env_remove("RUSTFLAGS")
        .current_dir(&package)
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let mut diagnoses = Diagnoses::new();
    for line in stdout.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        if message["reason"] == "compiler-message" && message["message"]["level"] == "error" {
            let name = message["target"]["name"].as_str().unwrap().to_owned();
            let rendered = message["message"]["rendered"].as_str().unwrap().to_owned();
            diagnoses.entry(name).or_default().push(rendered);
        }
    }
    let trouble = String::from_utf8_lossy(&output.stderr);
    assert!(!diagnoses.is_empty(), "{trouble}");
    diagnoses
}

/// A path as TOML writes a text.
fn quoted(path: &Path) -> String {
    format!("{:?}", path.to_str().unwrap())
}
