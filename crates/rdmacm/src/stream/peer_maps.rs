//! Memory that the peer has mapped.

use rdmacm_rsocket::MapEntry;

/// What the peer has mapped, by index in this side's table.
#[derive(Debug, Default)]
pub(super) struct PeerMaps(Vec<MapEntry>);

impl PeerMaps {
    /// The peer has written an entry, which is in the table.
    pub(super) fn set(&mut self, index: u32, entry: MapEntry) {
        let index = index as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, MapEntry::default());
        }
        if let Some(known) = self.0.get_mut(index) {
            *known = entry;
        }
    }

    /// The address and the key of what is `skipped` bytes after an offset, and how many bytes
    /// from there belong to the same region.
    pub(super) fn locate(&self, offset: u64, skipped: usize) -> Option<(u64, u32, u32)> {
        // The peer may name a region that reaches beyond the last offset.
        let offset = offset.checked_add(skipped as u64)?;
        self.0.iter().find_map(|entry| {
            let (address, left) = entry.locate(offset)?;
            Some((address, entry.key, left))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_belongs_to_the_entry_that_maps_it_now() {
        let entry = |offset, address| MapEntry {
            offset,
            address,
            key: 7,
            length: 10,
        };
        let mut maps = PeerMaps::default();
        assert_eq!(maps.locate(0, 0), None);
        maps.set(2, entry(100, 0x1000));
        maps.set(0, entry(110, 0x2000));
        assert_eq!(maps.locate(109, 0), Some((0x1009, 7, 1)));
        assert_eq!(maps.locate(110, 0), Some((0x2000, 7, 10)));
        assert_eq!(maps.locate(0, 0), None, "entry 1 is empty");
        maps.set(2, entry(200, 0x3000));
        assert_eq!(maps.locate(109, 0), None);
        assert_eq!(maps.locate(200, 5), Some((0x3005, 7, 5)));
        maps.set(1, entry(u64::MAX, 0x4000));
        assert_eq!(maps.locate(u64::MAX, 0), Some((0x4000, 7, 10)));
        assert_eq!(maps.locate(u64::MAX, 1), None);
    }
}
