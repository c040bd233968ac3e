//! Gets the numbers of C headers from a C compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use anyhow::{Context as _, bail, ensure};

use super::HeaderSet;
use super::rows::Row;

/// The numbers of one set of headers.
#[derive(Debug)]
pub(super) struct HeaderValues {
    /// The set's label.
    pub(super) label: String,
    /// The kernel version of the headers: major, minor and point.
    pub(super) version: (u64, u64, u64),
    /// The headers of the rows that do not exist.
    pub(super) missing_headers: BTreeSet<&'static str>,
    /// The numbers of each row, `None` if the headers lack the declaration.
    pub(super) rows: Vec<Option<Vec<u64>>>,
}

/// Gets the numbers of every row from the headers of `set`.
pub(super) fn probe(set: &HeaderSet, rows: &[Row]) -> anyhow::Result<HeaderValues> {
    let compiler = Compiler::new(set)?;
    let mut answers = vec![None; rows.len()];
    let mut missing_headers = BTreeSet::new();
    for (header, indices) in by_header(rows) {
        if !compiler.has_header(header)? {
            missing_headers.insert(header);
            continue;
        }
        let expressions: Vec<&str> = indices
            .iter()
            .flat_map(|&index| {
                rows[index]
                    .cells
                    .iter()
                    .map(|cell| cell.expression.as_str())
            })
            .collect();
        let mut values = compiler.values(header, &expressions)?;
        for index in indices {
            let rest = values.split_off(rows[index].cells.len());
            answers[index] = values.into_iter().collect();
            values = rest;
        }
    }
    Ok(HeaderValues {
        label: set.label.clone(),
        version: compiler.kernel_version()?,
        missing_headers,
        rows: answers,
    })
}

/// Groups rows by header: each header has a C file of its own, because kernel and libc headers
/// declare some names twice.
fn by_header(rows: &[Row]) -> BTreeMap<&'static str, Vec<usize>> {
    let mut headers = BTreeMap::<_, Vec<_>>::new();
    for (index, row) in rows.iter().enumerate() {
        headers.entry(row.header).or_default().push(index);
    }
    headers
}

/// Makes directory names unique, because tests run in parallel in one process.
static DIRECTORIES: AtomicU32 = AtomicU32::new(0);

/// The C compiler with a set of headers and a temporary directory.
struct Compiler {
    program: OsString,
    include_dirs: Vec<PathBuf>,
    directory: PathBuf,
}

impl Compiler {
    fn new(set: &HeaderSet) -> anyhow::Result<Self> {
        for include_dir in &set.include_dirs {
            let shown = include_dir.display();
            ensure!(include_dir.is_dir(), "{}: no directory {shown}", set.label);
        }
        let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
        let name = format!("abi-check-{}-{number}", process::id());
        let directory = env::temp_dir().join(name);
        fs::create_dir(&directory).with_context(|| format!("create {}", directory.display()))?;
        Ok(Self {
            program: env::var_os("CC").unwrap_or_else(|| "cc".into()),
            include_dirs: set.include_dirs.clone(),
            directory,
        })
    }

    /// The values of C expressions with a header; `None` for those that do not compile.
    fn values(&self, header: &str, expressions: &[&str]) -> anyhow::Result<Vec<Option<u64>>> {
        let full_source = source(header, expressions, &BTreeSet::new());
        let dropped = self.failing_expressions(header, &full_source)?;
        let program = source(header, expressions, &dropped);
        let answers = self.run(header, &program)?;
        (0..expressions.len())
            .map(|index| match answers.get(&index) {
                Some(&value) => Ok(Some(value)),
                None if dropped.contains(&index) => Ok(None),
                None => bail!(
                    "{header}: the C program does not print {}",
                    expressions[index]
                ),
            })
            .collect()
    }

    fn kernel_version(&self) -> anyhow::Result<(u64, u64, u64)> {
        let header = "linux/version.h";
        ensure!(self.has_header(header)?, "{header}: missing");
        let code = self.values(header, &["LINUX_VERSION_CODE"])?;
        let Some(&Some(code)) = code.first() else {
            bail!("{header}: without LINUX_VERSION_CODE");
        };
        Ok((code >> 16, code >> 8 & 0xFF, code & 0xFF))
    }

    fn has_header(&self, header: &str) -> anyhow::Result<bool> {
        let test = format!("#if !__has_include(<{header}>)\n#error no-such-header\n#endif\n");
        let output = self.compile(&test, &["-fsyntax-only"])?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() && !errors.contains("no-such-header") {
            bail!("{header}: {}", excerpt(&errors));
        }
        Ok(output.status.success())
    }

    /// The expressions that do not compile.
    fn failing_expressions(&self, header: &str, program: &str) -> anyhow::Result<BTreeSet<usize>> {
        let output = self.compile(program, &["-fsyntax-only"])?;
        if output.status.success() {
            return Ok(BTreeSet::new());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines: BTreeSet<usize> = errors.lines().filter_map(line_of_error).collect();
        // The error is not a missing declaration.
        ensure!(!lines.is_empty(), "{header}: {}", excerpt(&errors));
        lines
            .into_iter()
            .map(|line| {
                line.checked_sub(FIRST_EXPRESSION)
                    .with_context(|| format!("{header}: {}", excerpt(&errors)))
            })
            .collect()
    }

    fn run(&self, header: &str, program: &str) -> anyhow::Result<BTreeMap<usize, u64>> {
        let output = self.compile(program, &["-o", EXECUTABLE])?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("{header}: {}", excerpt(&errors));
        }
        let output = Command::new(self.directory.join(EXECUTABLE))
            .output()
            .with_context(|| format!("run the C program for {header}"))?;
        ensure!(
            output.status.success(),
            "the C program for {header}: {}",
            output.status
        );
        String::from_utf8(output.stdout)?
            .lines()
            .map(|line| {
                let (index, value) = line
                    .split_once(' ')
                    .context("expected two numbers per line")?;
                Ok((index.parse()?, value.parse()?))
            })
            .collect()
    }

    fn compile(&self, program: &str, arguments: &[&str]) -> anyhow::Result<Output> {
        let file = self.directory.join(SOURCE);
        fs::write(&file, program).with_context(|| format!("write {}", file.display()))?;
        let mut command = Command::new(&self.program);
        command.current_dir(&self.directory).env("LC_ALL", "C");
        command.args(["-std=gnu11", "-fmax-errors=0", "-w"]);
        for include_dir in &self.include_dirs {
            command.arg("-isystem").arg(absolute(include_dir)?);
        }
        command.arg(SOURCE).args(arguments);
        let program = self.program.to_string_lossy();
        command
            .output()
            .with_context(|| format!("run the C compiler {program}: is one installed?"))
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // Not removing a temporary directory is harmless.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("find {}", path.display()))
}

/// The source file, which the compiler names in its errors.
const SOURCE: &str = "probe.c";

const EXECUTABLE: &str = "probe";

/// The line of the first expression. Each has its own line, so that an error's line identifies
/// the expression.
const FIRST_EXPRESSION: usize = 4;

/// A C program that prints the index and the value of each expression except the dropped ones.
fn source(header: &str, expressions: &[&str], dropped: &BTreeSet<usize>) -> String {
    let mut functions = String::new();
    let mut calls = String::new();
    for (index, expression) in expressions.iter().enumerate() {
        if !dropped.contains(&index) {
            // One function each: the compiler reports a missing name once per function.
            let _ = write!(
                functions,
                "static unsigned long long f{index}(void) {{ return {expression}; }}"
            );
            let _ = writeln!(calls, "\tprintf(\"{index} %llu\\n\", f{index}());");
        }
        functions.push('\n');
    }
    format!(
        "#include <{header}>\n\
         #include <stddef.h>\n\
         #include <stdio.h>\n\
         {functions}\
         int main(void)\n{{\n{calls}\treturn 0;\n}}\n"
    )
}

/// The source line of a compiler message, if it is an error.
fn line_of_error(diagnostic: &str) -> Option<usize> {
    let location = diagnostic.strip_prefix(SOURCE)?.strip_prefix(':')?;
    let (line, message) = location.split_once(':')?;
    message.contains("error:").then(|| line.parse().ok())?
}

/// The first errors of the compiler, which cause the others.
fn excerpt(errors: &str) -> String {
    errors.lines().take(8).collect::<Vec<_>>().join("\n")
}
