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

use glam::Vec3;

/// Why a map cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MapError(pub(crate) String);

/// The result of a sweep through a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SweepTrace {
    /// Covered fraction of the way, 0 to 1.
    pub(crate) fraction: f32,
    pub(crate) end: Vec3,
    /// Normal of the plane that stopped it; zero without one.
    pub(crate) normal: Vec3,
    /// Flags of the surface that stopped it. Quake's maps have none.
    pub(crate) surface: u32,
    pub(crate) starts_solid: bool,
    /// Whether the whole way is in something solid.
    pub(crate) all_solid: bool,
}

impl SweepTrace {
    /// Returns the result for a way without obstacles.
    fn free(end: Vec3) -> SweepTrace {
        SweepTrace { fraction: 1.0, end, normal: Vec3::ZERO, surface: 0, starts_solid: false, all_solid: false }
    }
}

/// A file with its table of lumps.
#[derive(Clone, Copy)]
struct Lumps<'a> {
    file: &'a [u8],
    table: &'a [u8],
}

impl<'a> Lumps<'a> {
    /// Reads a table of `count` entries at the offset `at`.
    pub(super) fn new(file: &'a [u8], at: usize, count: usize) -> Result<Lumps<'a>, MapError> {
        let table = file.get(at..at + 8 * count).ok_or_else(|| ends_before("table of lumps"))?;
        Ok(Lumps { file, table })
    }

    /// Returns the bytes of a lump by its index in the table.
    pub(super) fn bytes(&self, index: usize, lump: &'static str) -> Result<&'a [u8], MapError> {
        let entry = LumpRecord(&self.table[8 * index..8 * index + 8]);
        let (at, length) = (entry.u32(0) as usize, entry.u32(4) as usize);
        let bytes = at.checked_add(length).and_then(|end| self.file.get(at..end));
        bytes.ok_or_else(|| ends_before(lump))
    }

    /// Returns the records of a lump.
    pub(super) fn records(
        &self,
        index: usize,
        lump: &'static str,
        entry: usize,
    ) -> Result<impl ExactSizeIterator<Item = LumpRecord<'a>> + use<'a>, MapError> {
        let bytes = self.bytes(index, lump)?;
        if bytes.len() % entry != 0 {
            let length = bytes.len();
            return Err(MapError(format!("the lump of {lump} has {length} bytes, which is no multiple of {entry}")));
        }
        Ok(bytes.chunks_exact(entry).map(LumpRecord))
    }
}

fn ends_before(lump: &str) -> MapError {
    MapError(format!("the file ends before its {lump}"))
}

/// One little-endian record. Callers read only at offsets within its size.
#[derive(Clone, Copy)]
struct LumpRecord<'a>(&'a [u8]);

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
        let error = |file: &[u8], entry| records(file, entry).expect_err("damage").to_string();
        assert_eq!(error(&file, 3), "the lump of things has 4 bytes, which is no multiple of 3");
        assert_eq!(error(&file[..16], 2), "the file ends before its things");
        assert_eq!(error(&file[..8], 2), "the file ends before its table of lumps");
    }
}
