//! Memory that one side of a stream maps, and the other one writes at an offset.

use std::io;

use rdmacm_verbs::RemoteAccessRegion;

use super::rdma_stream::RdmaStream;
use super::stream_halves::OwnedWriteHalf;

/// What a stream and its half that writes have in common.
macro_rules! maps_memory {
    ($($type:ty),+) => {
        $(impl $type {
            waits! {
                /// Allocates and registers `length` bytes, all zero, that the peer may write with
                /// [`write_at`](Self::write_at), from `offset` on: a number that both sides agree on. The peer must have room for it
                /// ([`StreamOptions::map_entries`](crate::StreamOptions::map_entries)), and knows of it
                /// when it reads what is written to the stream after this.
                ///
                /// The wire has no means to take it back: it stays registered as long as the stream
                /// lives, also if the region is dropped.
                blocking {
                    ///
                    /// ```no_run
                    /// # fn example(stream: &rdmacm::RdmaStream) -> std::io::Result<()> {
                    /// use std::io::{Read as _, Write as _};
                    ///
                    /// let counters = stream.map(4096, 0)?;
                    /// (&*stream).write_all(b"mapped")?;
                    /// // The peer writes 8 bytes with `write_at(&bytes, 16)`, and then to the stream.
                    /// (&*stream).read_exact(&mut [0])?;
                    /// let mut counter = [0; 8];
                    /// counters.read(16, &mut counter);
                    /// # Ok(())
                    /// # }
                    /// ```
                }
                awaited {
                    /// Dropping the future maps nothing.
                }
                both {
                    ///
                    /// # Errors
                    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the peer has no room for another
                    /// region ([`Cause::NoMapEntry`]), and for 4 GiB or more
                    /// ([`Cause::NotMappable`]); those of writing and of registering memory.
                    ///
                    /// [`Cause::NoMapEntry`]: crate::Cause::NoMapEntry
                    /// [`Cause::NotMappable`]: crate::Cause::NotMappable
                    #[doc(alias = "riomap", alias = "riounmap")]
                }
                pub fn map(&self, length: usize, offset: u64) -> io::Result<RemoteAccessRegion> {
                    self.inner.event_loop() => self.inner.map(length, offset)
                }
            }

            waits! {
                /// Writes into memory that the peer has [mapped](Self::map) at this offset, and returns
                /// how many bytes: as many as there is room for, up to the end of what is mapped. The
                /// peer's program takes no part in it. The bytes are there when the peer reads what is
                /// written to the stream after them.
                awaited {
                    /// Dropping the future writes nothing.
                }
                both {
                    ///
                    /// # Errors
                    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the peer has mapped nothing at
                    /// this offset ([`Cause::NotMapped`](crate::Cause::NotMapped)); those of writing.
                    #[doc(alias = "riowrite")]
                }
                pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
                    self.inner.event_loop() => self.inner.write_at(bytes, offset)
                }
            }

            waits! {
                /// As [`write_at`](Self::write_at), until all bytes are written.
                awaited {
                    /// Dropping the future may leave some of them written.
                }
                both {
                    ///
                    /// # Errors
                    /// Those of [`write_at`](Self::write_at); some bytes may have been written then.
                    #[doc(alias = "riowrite")]
                }
                pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
                    self.inner.event_loop() => self.inner.write_all_at(bytes, offset)
                }
            }
        })+
    };
}

maps_memory!(RdmaStream, OwnedWriteHalf);
