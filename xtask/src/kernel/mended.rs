//! A defect of the kernel that ends whole guests, mended in the source.
//!
//! `cma_release_dev` releases the device of an id, then the device's GID. If the device is being
//! removed, that goes on at once, and the device may be freed before the GID is put. The work
//! that frees the GID uses the device then: an oops in `free_gid_work`. A delay of 300 ms between
//! the two makes the first removal of a device oops, and is harmless in the order of
//! [`mend`], with which no removal does.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

const FILE: &str = "drivers/infiniband/core/cma.c";

/// Names the change for the cache: a kernel without it is built again.
pub(crate) const NAME: &str = "# cma_release_dev puts the GID before the device\n";

/// Makes `cma_release_dev` release the GID first. A source that does so already stays as it is; one
/// in which it looks different is refused, because guests would be lost now and then.
pub(crate) fn mend(tree: &Path) -> anyhow::Result<()> {
    let path = tree.join(FILE);
    let source = fs::read_to_string(&path).with_context(|| format!("read {FILE}"))?;
    match reordered(&source) {
        Found::Defect(mended) => {
            fs::write(&path, mended).with_context(|| format!("write {FILE}"))?;
        }
        Found::NoDefect => eprintln!("  {FILE}: nothing to mend"),
        Found::Unknown => bail!("{FILE}: cma_release_dev looks different, and cannot be mended"),
    }
    Ok(())
}

/// What the function is like.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// The source without it.
    Defect(String),
    NoDefect,
    Unknown,
}

fn reordered(source: &str) -> Found {
    match (puts(source), mended(source)) {
        (Some((device, gid)), Some(mended)) if device < gid => Found::Defect(mended),
        (Some((device, gid)), _) if gid < device => Found::NoDefect,
        _ => Found::Unknown,
    }
}

/// Where the function begins and ends.
fn function(source: &str) -> Option<(usize, usize)> {
    let begin = source.find("static void cma_release_dev(")?;
    let end = begin + source.get(begin..)?.find("\n}\n")?;
    Some((begin, end))
}

/// Where the function releases the device, and the GID.
fn puts(source: &str) -> Option<(usize, usize)> {
    let (begin, end) = function(source)?;
    let body = source.get(begin..end)?;
    Some((body.find("cma_dev_put(")?, body.find("rdma_put_gid_attr(")?))
}

/// The source with the two statements about the device at the end of the function, before the
/// lock is released.
fn mended(source: &str) -> Option<String> {
    let (begin, end) = function(source)?;
    let mut lines: Vec<_> = source.get(begin..end)?.lines().collect();
    let position = |lines: &[&str], part: &str| lines.iter().position(|line| line.contains(part));
    let put = lines.remove(position(&lines, "cma_dev_put(")?);
    let clear = lines.remove(position(&lines, "cma_dev = NULL;")?);
    let unlock = position(&lines, "mutex_unlock(")?;
    lines.splice(unlock..unlock, [put, clear]);
    let (before, after) = (source.get(..begin)?, source.get(end..)?);
    Some(format!("{before}{}{after}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFECTIVE: &str = "void other(void)\n{\n}\n\nstatic void cma_release_dev(p)\n{\n\tmutex_lock(l);\n\tcma_dev_put(d);\n\tp->cma_dev = NULL;\n\tif (gid) {\n\t\trdma_put_gid_attr(gid);\n\t}\n\tmutex_unlock(l);\n}\n\nvoid last(void)\n{\n}\n";

    #[test]
    fn the_gid_is_released_first() {
        let Found::Defect(mended) = reordered(DEFECTIVE) else {
            panic!("it has the defect");
        };
        let expected = "void other(void)\n{\n}\n\nstatic void cma_release_dev(p)\n{\n\tmutex_lock(l);\n\tif (gid) {\n\t\trdma_put_gid_attr(gid);\n\t}\n\tcma_dev_put(d);\n\tp->cma_dev = NULL;\n\tmutex_unlock(l);\n}\n\nvoid last(void)\n{\n}\n";
        assert_eq!(mended, expected);
        assert_eq!(reordered(&mended), Found::NoDefect);
        assert_eq!(reordered("int cma;\n"), Found::Unknown);
    }

    #[test]
    fn a_source_that_cannot_be_mended_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path().join(FILE);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, DEFECTIVE).unwrap();
        mend(tree.path()).unwrap();
        fs::write(&path, "int cma;\n").unwrap();
        mend(tree.path()).unwrap_err();
    }
}
