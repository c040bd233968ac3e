//! The GIDs of a port.

use std::fs;
use std::io;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use rdmacm_core::Gid;

/// An entry of a port's GID table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_gid_entry")]
#[non_exhaustive]
pub struct GidEntry {
    /// Its index in the port's table, for address handles and queue pairs.
    #[doc(alias = "sgid_index")]
    pub index: u32,
    /// The GID.
    pub gid: Gid,
    /// Its type, as the kernel names it: `RoCE v2`, `IB/RoCE v1`. `None` if the kernel does not
    /// report it.
    #[doc(alias = "gid_type")]
    pub kind: Option<String>,
    /// Its network interface; `None` on InfiniBand.
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

/// The GID table of a port in sysfs.
pub(crate) struct GidTable {
    port: PathBuf,
}

impl GidTable {
    pub(crate) fn new(device: &str, port: u8) -> Self {
        let class = PathBuf::from("/sys/class/infiniband");
        Self {
            port: class.join(device).join("ports").join(port.to_string()),
        }
    }

    /// The entry of this index; `None` if it is empty.
    pub(crate) fn entry(&self, index: u32) -> io::Result<Option<GidEntry>> {
        let text = fs::read_to_string(self.file("gids", index))?;
        let gid = parse(&text).ok_or(io::ErrorKind::InvalidData)?;
        // Reading these fails for an empty entry.
        let attribute = |directory| {
            let text = fs::read_to_string(self.file(directory, index)).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        Ok((gid != Gid::UNSPECIFIED).then(|| GidEntry {
            index,
            gid,
            kind: attribute("gid_attrs/types"),
            interface: attribute("gid_attrs/ndevs"),
        }))
    }

    fn file(&self, directory: &str, index: u32) -> PathBuf {
        self.port.join(directory).join(index.to_string())
    }
}

/// A GID in the kernel's format: an unabbreviated IPv6 address.
fn parse(text: &str) -> Option<Gid> {
    text.trim().parse::<Ipv6Addr>().ok().map(Gid::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn an_entry_has_its_gid_type_and_interface() {
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
        file("gids", "invalid");
        assert!(table.entry(3).is_err());
    }

    #[test]
    fn an_unabbreviated_gid_is_parsed() {
        let gid = parse("0000:0000:0000:0000:0000:ffff:0a47:0101\n").unwrap();
        assert_eq!(gid.to_string(), "::ffff:10.71.1.1");
        assert_eq!(parse("0a47:0101"), None);
    }

    #[test]
    fn a_missing_device_has_no_table() {
        let table = GidTable::new("nonexistent", 1);
        let error = table.entry(0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
