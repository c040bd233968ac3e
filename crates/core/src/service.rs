//! InfiniBand service records.

use std::borrow::Cow;
use std::fmt;

use rdmacm_abi::Reserved;

use crate::address::IbAddr;
use crate::gid::Gid;

/// A service of an InfiniBand port, as registered with the subnet administrator. Numbers are in host order. Source: IBTA Vol 1
/// §15.2.5.14.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "ib_user_service_rec")]
pub struct ServiceRecord {
    /// The service id, which a connect request names.
    #[doc(alias = "ServiceID")]
    pub id: u64,
    /// The GID of the port.
    #[doc(alias = "ServiceGID")]
    pub gid: Gid,
    /// The partition key.
    #[doc(alias = "ServiceP_Key")]
    pub pkey: u16,
    /// The lease in seconds; `None` if it does not end.
    #[doc(alias = "ServiceLease")]
    pub lease: Option<u32>,
    /// The key that authorizes changes of the record; the administrator returns zeros to
    /// others.
    #[doc(alias = "ServiceKey")]
    pub key: [u8; 16],
    /// The service's name, at most 64 bytes, in no particular encoding.
    #[doc(alias = "ServiceName")]
    pub name: ServiceName,
    /// The service's own data.
    pub data: ServiceData,
}

/// The name of an InfiniBand service: 64 bytes at most, up to the first zero, in
/// no particular encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServiceName([u8; 64]);

/// The data of a service, whose meaning the service defines, in four widths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ServiceData {
    /// Bytes.
    #[doc(alias = "ServiceData8")]
    pub bytes: [u8; 16],
    /// 16-bit numbers.
    #[doc(alias = "ServiceData16")]
    pub halves: [u16; 8],
    /// 32-bit numbers.
    #[doc(alias = "ServiceData32")]
    pub words: [u32; 4],
    /// 64-bit numbers.
    #[doc(alias = "ServiceData64")]
    pub longs: [u64; 2],
}

/// The lease that does not end.
const NO_LEASE_END: u32 = u32::MAX;

impl ServiceRecord {
    /// The service `id` of the port with this GID, in the default partition, without a
    /// lease's end or a name.
    #[must_use]
    pub fn new(id: u64, gid: Gid) -> Self {
        Self {
            id,
            gid,
            pkey: IbAddr::DEFAULT_PKEY,
            lease: None,
            key: [0; 16],
            name: ServiceName::default(),
            data: ServiceData::default(),
        }
    }
}

impl ServiceName {
    /// The name's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The name as text, with invalid UTF-8 replaced.
    #[must_use]
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl Default for ServiceName {
    /// No name.
    fn default() -> Self {
        Self([0; 64])
    }
}

impl TryFrom<&[u8]> for ServiceName {
    type Error = ServiceNameError;

    fn try_from(bytes: &[u8]) -> Result<Self, ServiceNameError> {
        if bytes.contains(&0) {
            return Err(ServiceNameError::Nul);
        }
        let mut name = [0; 64];
        name.get_mut(..bytes.len())
            .ok_or(ServiceNameError::TooLong)?
            .copy_from_slice(bytes);
        Ok(Self(name))
    }
}

impl TryFrom<&str> for ServiceName {
    type Error = ServiceNameError;

    fn try_from(text: &str) -> Result<Self, ServiceNameError> {
        text.as_bytes().try_into()
    }
}

/// Bytes that are no [`ServiceName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceNameError {
    /// More than 64 bytes.
    #[error("the name of a service has at most 64 bytes")]
    TooLong,
    /// A zero among them.
    #[error("the name of a service has no NUL")]
    Nul,
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_text().fmt(f)
    }
}

impl fmt::Debug for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceName({:?})", self.to_text())
    }
}

impl From<&rdmacm_abi::ServiceRecord> for ServiceRecord {
    fn from(record: &rdmacm_abi::ServiceRecord) -> Self {
        let lease = record.lease.get();
        Self {
            id: record.id.get(),
            gid: Gid(record.gid),
            pkey: record.pkey.get(),
            lease: (lease != NO_LEASE_END).then_some(lease),
            key: record.key,
            name: ServiceName(record.name),
            data: ServiceData {
                bytes: record.data_8,
                halves: record.data_16.map(Into::into),
                words: record.data_32.map(Into::into),
                longs: record.data_64.map(Into::into),
            },
        }
    }
}

impl From<&ServiceRecord> for rdmacm_abi::ServiceRecord {
    fn from(record: &ServiceRecord) -> Self {
        Self {
            id: record.id.into(),
            gid: record.gid.0,
            pkey: record.pkey.into(),
            reserved: Reserved::ZERO,
            lease: record.lease.unwrap_or(NO_LEASE_END).into(),
            key: record.key,
            name: record.name.0,
            data_8: record.data.bytes,
            data_16: record.data.halves.map(Into::into),
            data_32: record.data.words.map(Into::into),
            data_64: record.data.longs.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_converted_to_the_kernels_and_back() {
        let mut record = ServiceRecord::new(0x1000_0000_0000_0007, Gid([3; 16]));
        record.pkey = 0x8001;
        record.lease = Some(30);
        record.name = "storage".try_into().unwrap();
        record.data.halves[7] = 0x1234;
        record.data.longs[0] = u64::MAX - 1;
        let bytes = rdmacm_abi::ServiceRecord::from(&record);
        assert_eq!(ServiceRecord::from(&bytes), record);
        assert_eq!(bytes.lease.get(), 30);
        record.lease = None;
        let bytes = rdmacm_abi::ServiceRecord::from(&record);
        assert_eq!(bytes.lease.get(), u32::MAX);
    }

    #[test]
    fn a_name_is_64_bytes_without_a_zero() {
        let longest = [b'x'; 64];
        let name = ServiceName::try_from(&longest[..]).unwrap();
        assert_eq!(name.as_bytes(), longest);
        let name = |bytes: &[u8]| ServiceName::try_from(bytes);
        assert_eq!(name(&[b'x'; 65]), Err(ServiceNameError::TooLong));
        assert_eq!(name(b"a\0b"), Err(ServiceNameError::Nul));
        assert_eq!(name(b"").unwrap(), ServiceName::default());
        assert_eq!(name(b"a\xff").unwrap().to_string(), "a\u{fffd}");
    }
}
