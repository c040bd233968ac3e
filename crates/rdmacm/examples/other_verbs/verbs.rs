//! Some verbs library. It has no hardware: its queue pairs are numbers.

pub(crate) use super::attributes::Attr;

#[derive(Debug)]
pub(crate) struct Qp {
    number: u32,
}

impl Qp {
    pub(crate) fn new() -> Self {
        Self { number: 0x7471 }
    }

    pub(crate) fn qp_num(&self) -> u32 {
        self.number
    }

    pub(crate) fn modify(&self, _: &Attr, mask: u32) -> std::io::Result<()> {
        if self.number == 0 || mask == 0 {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        Ok(())
    }
}
