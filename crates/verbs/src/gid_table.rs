//! The GIDs of a port.

use std::fs;
use std::io;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use rdmacm_core::Gid;

/// A GID of a port, and what speaks under it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_gid_entry")]
#[non_exhaustive]
pub struct GidEntry {
    /// Its index in the port's table, as address handles and queue pairs name it.
    #[doc(alias = "sgid_index")]
    pub index: u32,
    /// The GID.
    pub gid: Gid,
    /// What is spoken under it, in the kernel's words: `RoCE v2`, `IB/RoCE v1`.
    /// `None` where the kernel does not tell.
    #[doc(alias = "gid_type")]
    pub kind: Option<String>,
    /// The network interface it belongs to; none on InfiniBand.
    pub interface: Option<String>,
}

impl GidEntry {
    /// An entry whose type and network interface are not known.
    #[must_use]
    pub const fn new(index: u32, gid: Gid) -> Self {
        Self {
            index,
            gid,
            kind: None,
            interface: None,
        }
    }
}

/// Where sysfs has the GIDs of a port.
pub(crate) struct GidTable {
    port: PathBuf,
}

impl GidTable {
    pub(crate) fn of(device: &str, port: u8) -> Self {
        let class = PathBuf::from("/sys/class/infiniband");
        Self {
            port: class.join(device).join("ports").join(port.to_string()),
        }
    }

    /// The entry of this index; `None` if it is empty.
    pub(crate) fn entry(&self, index: u32) -> io::Result<Option<GidEntry>> {
        let text = fs::read_to_string(self.file("gids", index))?;
        let gid = parse(&text).ok_or(io::ErrorKind::InvalidData)?;
        // The kernel refuses to tell these of an empty entry.
        let word = |directory| {
            let text = fs::read_to_string(self.file(directory, index)).ok()?;
            Some(text.trim().to_owned()).filter(|word| !word.is_empty())
        };
        Ok((gid != Gid::UNSPECIFIED).then(|| GidEntry {
            index,
            gid,
            kind: word("gid_attrs/types"),
            interface: word("gid_attrs/ndevs"),
        }))
    }

    fn file(&self, directory: &str, index: u32) -> PathBuf {
        self.port.join(directory).join(index.to_string())
    }
}

/// A GID in the kernel's words: an IPv6 address in full.
fn parse(text: &str) -> Option<Gid> {
    text.trim().parse::<Ipv6Addr>().ok().map(Gid::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn an_entry_is_its_gid_and_what_else_is_told_of_it() {
        let folder = TempDir::new().unwrap();
        let file = |directory: &str, text: &str| {
            let directory = folder.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("3"), text).unwrap();
        };
        let table = GidTable {
            port: folder.path().to_owned(),
        };
        assert!(table.entry(3).is_err(), "there is no such index");
        file("gids", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
        file("gid_attrs/types", "RoCE v2\n");
        let entry = table.entry(3).unwrap().unwrap();
        assert_eq!((entry.index, entry.gid.to_string()), (3, "fe80::1".into()));
        assert_eq!(entry.kind.as_deref(), Some("RoCE v2"));
        assert_eq!(entry.interface, None);
        file("gid_attrs/ndevs", "\n");
        assert_eq!(table.entry(3).unwrap().unwrap().interface, None);
        file("gids", "0000:0000:0000:0000:0000:0000:0000:0000\n");
        assert_eq!(table.entry(3).unwrap().map(|entry| entry.index), None);
        file("gids", "nonsense");
        assert!(table.entry(3).is_err());
    }

    #[test]
    fn a_gid_in_full_is_read() {
        let gid = parse("0000:0000:0000:0000:0000:ffff:0a47:0101\n").unwrap();
        assert_eq!(gid.to_string(), "::ffff:10.71.1.1");
        assert_eq!(parse("0a47:0101"), None);
    }

    #[test]
    fn a_device_that_is_not_there_has_no_table() {
        let table = GidTable::of("nonexistent", 1);
        let error = table.entry(0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
