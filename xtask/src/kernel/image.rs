//! The release of a kernel image.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

// The x86 boot protocol's header, from the kernel's documentation.
const MAGIC_OFFSET: u64 = 0x202;
const MAGIC: &[u8; 4] = b"HdrS";
const VERSION_POINTER_OFFSET: u64 = 0x20e;
const VERSION_POINTER_BASE: u64 = 0x200;

/// The release (`uname -r`) of a bzImage.
pub(crate) fn release(image: &Path) -> anyhow::Result<String> {
    let file = File::open(image).with_context(|| format!("open {}", image.display()))?;
    read_release(&file).with_context(|| format!("{} is not a bzImage", image.display()))
}

fn read_release(file: &File) -> anyhow::Result<String> {
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, MAGIC_OFFSET)?;
    ensure!(&magic == MAGIC, "no boot header");
    let mut pointer = [0; 2];
    file.read_exact_at(&mut pointer, VERSION_POINTER_OFFSET)?;
    let mut text = [0; 128];
    let offset = VERSION_POINTER_BASE + u64::from(u16::from_le_bytes(pointer));
    let length = file.read_at(&mut text, offset)?;
    let version = String::from_utf8_lossy(&text[..length]).into_owned();
    match version.split([' ', '\0']).next() {
        Some(release) if !release.is_empty() => Ok(release.to_owned()),
        _ => bail!("the boot header has no version"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_release_is_read_from_the_boot_header() {
        let mut image = vec![0; 0x900];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x600_u16.to_le_bytes());
        image[0x800..0x814].copy_from_slice(b"6.1.0-1 (me@here) #1");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&image).unwrap();
        assert_eq!(release(file.path()).unwrap(), "6.1.0-1");
    }

    #[test]
    fn a_file_without_a_boot_header_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[0; 0x900]).unwrap();
        assert!(release(file.path()).is_err());
    }
}
