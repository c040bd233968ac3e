//! A defect of the kernel that ends whole guests, mended in the source.
//!
//! `cma_release_dev` releases the device of an id, then the device's GID. If the device is being
//! removed, that goes on at once, and the device may be freed before the GID is put. The work
//! that frees the GID uses the device then: an oops in `free_gid_work`. A delay of 300 ms between
//! the two makes the first removal of a device oops, and is harmless in the order of
//! [`mend`], with which no removal does.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

const FILE: &str = "drivers/infiniband/core/cma.c";

/// Names the change for the cache: a kernel without it is built again.
pub(crate) const NAME: &str = "# cma_release_dev puts the GID before the device\n";

/// Makes `cma_release_dev` release the GID first. A source that does so already stays as it is.
pub(crate) fn mend(tree: &Path) -> anyhow::Result<()> {
    let path = tree.join(FILE);
    let source = fs::read_to_string(&path).with_context(|| format!("read {FILE}"))?;
    let Some(mended) = reordered(&source) else {
        eprintln!("  {FILE}: nothing to mend");
        return Ok(());
    };
    fs::write(&path, mended).with_context(|| format!("write {FILE}"))
}

/// The source with the two statements about the device at the end of the function, before the
/// lock is released.
fn reordered(source: &str) -> Option<String> {
    let begin = source.find("static void cma_release_dev(")?;
    let end = begin + source.get(begin..)?.find("\n}\n")?;
    let mut lines: Vec<_> = source.get(begin..end)?.lines().collect();
    let position = |lines: &[&str], part: &str| lines.iter().position(|line| line.contains(part));
    let device = position(&lines, "cma_dev_put(")?;
    if position(&lines, "rdma_put_gid_attr(")? < device {
        return None;
    }
    let put = lines.remove(device);
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
        let mended = reordered(DEFECTIVE).unwrap();
        let expected = "void other(void)\n{\n}\n\nstatic void cma_release_dev(p)\n{\n\tmutex_lock(l);\n\tif (gid) {\n\t\trdma_put_gid_attr(gid);\n\t}\n\tcma_dev_put(d);\n\tp->cma_dev = NULL;\n\tmutex_unlock(l);\n}\n\nvoid last(void)\n{\n}\n";
        assert_eq!(mended, expected);
        assert_eq!(reordered(&mended), None, "once");
        assert_eq!(reordered("int cma;\n"), None);
    }
}
