//! Maps of id's engines, as their compilers write them, and collision against them. Quake maps ([`quake`], version 29) have
//! trees of planes for one body size. Quake III maps ([`quake3`], version 46) have brushes and curved surfaces for boxes of
//! any size.
//!
//! Both formats begin with a version and a table of lumps, as offsets and lengths. Each lump is a list of records of equal
//! size.

pub(crate) mod quake;
pub(crate) mod quake3;
#[cfg(test)]
pub(crate) mod tests;

/// Why a lump cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LumpError {
    /// The table of lumps, or a lump, extends past the end of the file.
    #[error("the file ends before its {lump}")]
    Truncated {
        /// Name of the lump.
        lump: &'static str,
    },
    /// The length of a lump is not a multiple of its record size.
    #[error("the lump of {lump} has {length} bytes, which is no multiple of {entry}")]
    Length {
        /// Name of the lump.
        lump: &'static str,
        /// Length of the lump, in bytes.
        length: usize,
        /// Size of a record, in bytes.
        entry: usize,
    },
}

/// A file with its table of lumps.
#[derive(Clone, Copy)]
pub(super) struct Lumps<'a> {
    file: &'a [u8],
    table: &'a [u8],
}

impl<'a> Lumps<'a> {
    /// Reads a table of `count` entries at the offset `at`.
    pub(super) fn new(file: &'a [u8], at: usize, count: usize) -> Result<Lumps<'a>, LumpError> {
        let table = file.get(at..at + 8 * count).ok_or(LumpError::Truncated { lump: "table of lumps" })?;
        Ok(Lumps { file, table })
    }

    /// Returns the bytes of a lump by its index in the table.
    pub(super) fn bytes(&self, index: usize, lump: &'static str) -> Result<&'a [u8], LumpError> {
        let entry = LumpRecord(&self.table[8 * index..8 * index + 8]);
        let (at, length) = (entry.u32(0) as usize, entry.u32(4) as usize);
        let bytes = at.checked_add(length).and_then(|end| self.file.get(at..end));
        bytes.ok_or(LumpError::Truncated { lump })
    }

    /// Returns the records of a lump.
    pub(super) fn records(
        &self,
        index: usize,
        lump: &'static str,
        entry: usize,
    ) -> Result<impl ExactSizeIterator<Item = LumpRecord<'a>> + use<'a>, LumpError> {
        let bytes = self.bytes(index, lump)?;
        if bytes.len() % entry != 0 {
            return Err(LumpError::Length { lump, length: bytes.len(), entry });
        }
        Ok(bytes.chunks_exact(entry).map(LumpRecord))
    }
}

/// One little-endian record. Callers read only at offsets within its size.
#[derive(Clone, Copy)]
pub(super) struct LumpRecord<'a>(&'a [u8]);

impl LumpRecord<'_> {
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        std::array::from_fn(|index| self.0[at + index])
    }

    pub(super) fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(super) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(super) fn i32(self, at: usize) -> i32 {
        i32::from_le_bytes(self.array(at))
    }

    pub(super) fn f32(self, at: usize) -> f32 {
        f32::from_le_bytes(self.array(at))
    }

    pub(super) fn vec3(self, at: usize) -> [f32; 3] {
        [self.f32(at), self.f32(at + 4), self.f32(at + 8)]
    }
}

#[cfg(test)]
mod lump_tests {
    use super::*;

    #[test]
    fn records_are_little_endian_and_within_the_file() {
        let file = [9, 13, 0, 0, 0, 4, 0, 0, 0, 14, 0, 0, 0, 2, 3, 0xff, 0xff];
        let records = |file: &[u8], entry| {
            Lumps::new(file, 1, 1)?.records(0, "things", entry).map(|all| all.map(|r| r.u16(0)).collect::<Vec<_>>())
        };
        assert_eq!(records(&file, 2), Ok(vec![0x0302, 0xffff]));
        assert_eq!(records(&file, 3), Err(LumpError::Length { lump: "things", length: 4, entry: 3 }));
        assert_eq!(records(&file[..16], 2), Err(LumpError::Truncated { lump: "things" }));
        assert_eq!(records(&file[..8], 2), Err(LumpError::Truncated { lump: "table of lumps" }));
    }
}
