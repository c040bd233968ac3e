//! Calls out of order and misuse of memory do not compile, and the compiler says why
//! in words that help. Each file of `out_of_order/` and `memory/` begins with what it
//! must say.
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
    assert_refused("out_of_order");
}

#[test]
fn misuse_of_memory_does_not_compile() {
    assert_refused("memory");
}

/// Each file of a folder is refused, but for the one that is in order.
fn assert_refused(folder: &str) {
    let mut cases = cases(folder);
    let in_order = cases.get("in_order").cloned();
    let diagnoses = check(folder, &cases);
    // What is in order compiles, so the errors are those of the order.
    assert!(in_order.is_some());
    assert_eq!(diagnoses.get("in_order"), None);
    cases.remove("in_order");
    assert!(!cases.is_empty());
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
}

fn cases(folder: &str) -> BTreeMap<String, PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folder = tests.join(folder);
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| file.unwrap().path())
        .map(|path| {
            let stem = path.file_stem().unwrap();
            (stem.to_str().unwrap().to_owned(), path.clone())
        })
        .collect()
}

/// Checks every file as a program of its own, in a package that depends on this
/// one as a user's would.
fn check(folder: &str, cases: &BTreeMap<String, PathBuf>) -> Diagnoses {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    fs::create_dir_all(&package).unwrap();
    let mut manifest = format!(
        "[package]\nname = \"{folder}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [workspace]\n\n[dependencies]\nrdmacm = {{ path = {root}, features = [\"tokio\"] }}\n",
        root = quoted(root)
    );
    for (name, path) in cases {
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
        // One for all folders.
        .arg(package.with_file_name("target"))
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
