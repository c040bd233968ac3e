//! Bytes of several slices, one after the other.

use std::io::IoSlice;

/// The bytes of several slices that were not copied yet.
#[derive(Debug)]
pub(super) struct Slices<'a> {
    rest: &'a [IoSlice<'a>],
    /// How many bytes of the first slice were copied.
    offset: usize,
    left: usize,
}

impl<'a> Slices<'a> {
    pub(super) fn new(slices: &'a [IoSlice<'a>]) -> Self {
        let lengths = slices.iter().map(|slice| slice.len());
        Self {
            rest: slices,
            offset: 0,
            left: lengths.fold(0, usize::saturating_add),
        }
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Whether the next `length` bytes are of one slice.
    pub(super) fn next_are_one(&self, length: usize) -> bool {
        let first = self.rest.first();
        first.is_some_and(|first| first.len() - self.offset >= length)
    }

    /// Takes the next bytes: those of one slice, `limit` at most; none at the end.
    pub(super) fn next(&mut self, limit: usize) -> &'a [u8] {
        while let Some((first, others)) = self.rest.split_first() {
            let first = first.get(self.offset..).unwrap_or_default();
            if first.is_empty() {
                self.rest = others;
                self.offset = 0;
                continue;
            }
            let bytes = first.get(..limit).unwrap_or(first);
            self.offset += bytes.len();
            self.left -= bytes.len();
            return bytes;
        }
        &[]
    }

    /// Takes the next `length` bytes. Copies them into the buffer if they are of several slices.
    pub(super) fn gather<'b>(&mut self, length: usize, buffer: &'b mut [u8]) -> &'b [u8]
    where
        'a: 'b,
    {
        let first = self.next(length);
        if first.len() == length {
            return first;
        }
        copy(buffer, 0, first);
        let rest = length - first.len();
        self.take(rest, |at, bytes| copy(buffer, first.len() + at, bytes));
        buffer.get(..length).unwrap_or(buffer)
    }

    /// Takes the next `length` bytes, and passes them on with their positions.
    pub(super) fn take(&mut self, length: usize, mut copy: impl FnMut(usize, &[u8])) {
        let mut done = 0;
        while done < length {
            let bytes = self.next(length - done);
            if bytes.is_empty() {
                return;
            }
            copy(done, bytes);
            done += bytes.len();
        }
    }
}

/// Copies bytes to a place of the buffer, as many as fit.
fn copy(buffer: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in buffer.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_several_slices_are_gathered() {
        let slices = [IoSlice::new(b"abc"), IoSlice::new(b""), IoSlice::new(b"de")];
        let mut slices = Slices::new(&slices);
        assert_eq!(slices.gather(2, &mut [0; 2]), b"ab");
        assert!(slices.next_are_one(1) && !slices.next_are_one(2));
        assert_eq!(slices.gather(3, &mut [0; 64]), b"cde");
        assert_eq!(slices.left(), 0);
        assert_eq!(slices.gather(0, &mut [0; 1]), b"");
    }

    #[test]
    fn bytes_are_taken_across_slices() {
        let slices = [
            IoSlice::new(b"ab"),
            IoSlice::new(b""),
            IoSlice::new(b"cdefg"),
        ];
        let mut slices = Slices::new(&slices);
        let mut take = |length| {
            let mut taken = Vec::new();
            slices.take(length, |at, bytes| {
                assert_eq!(at, taken.len());
                taken.extend_from_slice(bytes);
            });
            (taken, slices.left())
        };
        assert_eq!(take(3), (b"abc".to_vec(), 4));
        assert_eq!(take(2), (b"de".to_vec(), 2));
        assert_eq!(take(9), (b"fg".to_vec(), 0));
        assert_eq!(take(1), (Vec::new(), 0));
    }
}
