//! Decompresses demos (`.xz`) and maps (`.gz`), which it recognises by their first bytes.

use std::borrow::Cow;
use std::io::{ErrorKind, Read};

/// Size limit after decompression in bytes, above any demo or map. It prevents a small file from filling the memory.
pub(crate) const LARGEST_UNPACKED: u64 = 64 << 20;
const XZ_DICTIONARY_KIB: u32 = 128 << 10;
const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// Why a compressed file could not be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The file is damaged or truncated, or needs more memory than allowed.
    #[error("it is packed with {format} and does not unpack: {source}")]
    Damaged {
        /// The compression format.
        format: &'static str,
        /// The decompression error.
        source: std::io::Error,
    },
    /// The decompressed file is too large.
    #[error("it is packed with {format} and unpacks to more than {LARGEST_UNPACKED} bytes")]
    TooLarge {
        /// The compression format.
        format: &'static str,
    },
}

/// Returns the decompressed bytes of a gzip or xz file, or the bytes themselves for other files.
///
/// # Errors
/// When the data is damaged or truncated, or decompresses to more than `LARGEST_UNPACKED`.
pub fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, UnpackError> {
    let Prefix { bytes, cut } = unpacked_prefix(bytes)?;
    cut.map_or(Ok(bytes), Err)
}

/// The content of a file that may be truncated.
pub(super) struct Prefix<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// The decompression error at the end of a truncated file.
    pub(super) cut: Option<UnpackError>,
}

/// Returns everything that can be decompressed from a file that may be truncated.
///
/// # Errors
/// As [`unpacked`], except for truncation.
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
    fn plain_bytes_are_unchanged_and_packed_ones_are_unpacked() {
        assert_eq!(unpacked(b"plain").expect("plain").as_ref(), b"plain");
        assert_eq!(unpacked(&gzip(b"packed")).expect("packed").as_ref(), b"packed");
    }

    #[test]
    fn damage_and_excessive_size_are_reported() {
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
