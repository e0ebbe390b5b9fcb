//! A bounds-checked reader of little-endian bytes that knows its offset in the file.

/// Reads forward through a slice. A read past the end returns [`UnexpectedEnd`] with its offset.
#[derive(Clone, Debug)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    /// File offset of the next byte.
    offset: usize,
}

/// The error for data that ends inside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnexpectedEnd {
    /// File offset of the incomplete value.
    pub(crate) offset: usize,
}

impl<'a> Bytes<'a> {
    /// Reads `data`, whose first byte has this file offset.
    pub(crate) fn new(data: &'a [u8], offset: usize) -> Bytes<'a> {
        Bytes { rest: data, offset }
    }

    /// Returns the file offset of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], UnexpectedEnd> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(UnexpectedEnd { offset: self.offset })?;
        (self.rest, self.offset) = (rest, self.offset + len);
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], UnexpectedEnd> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, UnexpectedEnd> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, UnexpectedEnd> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn i16(&mut self) -> Result<i16, UnexpectedEnd> {
        Ok(i16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, UnexpectedEnd> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, UnexpectedEnd> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(crate) fn f32(&mut self) -> Result<f32, UnexpectedEnd> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    pub(crate) fn vec3(&mut self) -> Result<[f32; 3], UnexpectedEnd> {
        Ok([self.f32()?, self.f32()?, self.f32()?])
    }

    /// Reads bytes up to a terminating zero, and skips the zero.
    pub(crate) fn zero_terminated(&mut self) -> Result<&'a [u8], UnexpectedEnd> {
        let len = self.rest.iter().position(|&byte| byte == 0).ok_or(UnexpectedEnd { offset: self.offset })?;
        Ok(&self.take(len + 1)?[..len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_little_endian_and_the_offset_follows() {
        let mut bytes = Bytes::new(&[1, 2, 3, 0xff, 0xff, 0, 0, 0x80, 0x3f], 100);
        assert_eq!(bytes.u8(), Ok(1));
        assert_eq!(bytes.u16(), Ok(0x0302));
        assert_eq!(bytes.i16(), Ok(-1));
        assert_eq!(bytes.f32(), Ok(1.0));
        assert!(bytes.is_empty());
        assert_eq!(bytes.u8(), Err(UnexpectedEnd { offset: 109 }));
    }

    #[test]
    fn a_string_needs_its_terminator() {
        let mut bytes = Bytes::new(b"dm3\0x", 0);
        assert_eq!(bytes.zero_terminated(), Ok(&b"dm3"[..]));
        assert_eq!(bytes.zero_terminated(), Err(UnexpectedEnd { offset: 4 }));
    }
}
