//! Reading in place on threads.

use std::io::{self, BufRead, Read};

use super::in_place_reader::InPlaceReader;
use super::stream_io::read_some;
use crate::stream::Reading;

impl BufRead for InPlaceReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match read_some(&self.half.inner, Reading::Check, &mut [])? {
            // Of a half that was shut down, nothing is read any more.
            0 => Ok(&[]),
            _ => Ok(self.received()),
        }
    }

    fn consume(&mut self, bytes: usize) {
        InPlaceReader::consume(self, bytes);
    }
}

impl Read for InPlaceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.half.read(into)
    }
}
