//! Demos come packed as `.xz`, maps as `.gz`: both are recognised by their first bytes.

use std::borrow::Cow;
use std::io::{ErrorKind, Read};

/// More than any demo or map needs, so that a small file cannot fill the memory.
pub(crate) const LARGEST_UNPACKED: u64 = 64 << 20;
const XZ_DICTIONARY_KIB: u32 = 128 << 10;
const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// Why a packed file could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// Damaged, cut off, or in need of more memory than is given to it.
    #[error("it is packed with {format} and does not unpack: {source}")]
    Damaged {
        /// The packer.
        format: &'static str,
        /// What the unpacker says.
        source: std::io::Error,
    },
    /// Too large.
    #[error("it is packed with {format} and unpacks to more than {LARGEST_UNPACKED} bytes")]
    TooLarge {
        /// The packer.
        format: &'static str,
    },
}

/// What the bytes hold: unpacked when they are packed with gzip or xz, as they are otherwise.
///
/// # Errors
/// Data that is damaged or cut off, and data that unpacks to more than `LARGEST_UNPACKED`.
pub fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, UnpackError> {
    let Prefix { bytes, cut } = unpacked_prefix(bytes)?;
    cut.map_or(Ok(bytes), Err)
}

/// What there is of a file that may be cut off.
pub(super) struct Prefix<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// What the unpacker says of the end, when it was packed and more should follow.
    pub(super) cut: Option<UnpackError>,
}

/// The same of what may be cut off: all that unpacks.
///
/// # Errors
/// As [`unpacked`], but for data that is cut off.
pub(super) fn unpacked_prefix(bytes: &[u8]) -> Result<Prefix<'_>, UnpackError> {
    if bytes.starts_with(GZIP) {
        read_all("gzip", flate2::read::MultiGzDecoder::new(bytes))
    } else if bytes.starts_with(XZ) {
        read_all("xz", lzma_rust2::XzReader::new_mem_limit(bytes, true, XZ_DICTIONARY_KIB))
    } else {
        Ok(Prefix { bytes: Cow::Borrowed(bytes), cut: None })
    }
}

fn read_all(format: &'static str, reader: impl Read) -> Result<Prefix<'static>, UnpackError> {
    let mut out = Vec::new();
    let read = reader.take(LARGEST_UNPACKED + 1).read_to_end(&mut out);
    let cut = match read.map_err(|source| (source.kind(), UnpackError::Damaged { format, source })) {
        Ok(_) => None,
        Err((ErrorKind::UnexpectedEof, cut)) => Some(cut),
        Err((_, damaged)) => return Err(damaged),
    };
    if out.len() as u64 > LARGEST_UNPACKED {
        return Err(UnpackError::TooLarge { format });
    }
    Ok(Prefix { bytes: Cow::Owned(out), cut })
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use super::*;

    pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn plain_bytes_stay_as_they_are_and_packed_ones_are_unpacked() {
        assert_eq!(unpacked(b"plain").expect("plain").as_ref(), b"plain");
        assert_eq!(unpacked(&gzip(b"packed")).expect("packed").as_ref(), b"packed");
    }

    #[test]
    fn damage_and_size_are_told() {
        let mut cut = gzip(&[7; 1000]);
        cut.truncate(cut.len() - 9);
        assert!(matches!(unpacked(&cut), Err(UnpackError::Damaged { format: "gzip", .. })));
        let prefix = unpacked_prefix(&cut).expect("what there is");
        assert!(prefix.cut.is_some() && prefix.bytes.iter().all(|byte| *byte == 7));
        let mut wrong = gzip(&[7; 1000]);
        let end = wrong.len();
        wrong[end - 6] ^= 1;
        assert!(unpacked_prefix(&wrong).is_err(), "its sum is another: that is no end");
        assert!(matches!(unpacked(XZ), Err(UnpackError::Damaged { format: "xz", .. })));
        let bomb = gzip(&vec![0; LARGEST_UNPACKED as usize + 1]);
        assert!(matches!(unpacked(&bomb), Err(UnpackError::TooLarge { format: "gzip" })));
    }
}
